//! The kind of a file, by its name: its icon, and which app and view show it.

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Markdown,
    Image,
    Audio,
    Video,
    Pdf,
    /// Rows and columns: CSV.
    Table,
    Json,
    Notebook,
    Other,
}

pub(crate) fn kind(name: &str) -> Kind {
    let extension = name.rsplit_once('.').map(|(_, e)| e.to_lowercase()).unwrap_or_default();
    match extension.as_str() {
        "md" | "markdown" => Kind::Markdown,
        "png" | "jpg" | "jpeg" | "gif" | "webp" | "avif" | "svg" | "ico" => Kind::Image,
        "mp3" | "wav" | "ogg" | "opus" | "flac" | "m4a" => Kind::Audio,
        "mp4" | "m4v" | "mov" | "webm" => Kind::Video,
        "pdf" => Kind::Pdf,
        "csv" | "tsv" => Kind::Table,
        "json" | "jsonl" | "ndjson" | "geojson" => Kind::Json,
        "ipynb" => Kind::Notebook,
        "zip" | "gz" | "xz" | "bz2" | "7z" | "tar" | "woff" | "woff2" | "ttf" | "otf" | "exe" | "bin"
        | "wasm" | "sqlite" | "db" | "so" | "o" | "docx" | "xlsx" | "pptx" => Kind::Other,
        _ => Kind::Text,
    }
}

impl Kind {
    /// The name that `web/src/viewer.ts` has for it; none if it cannot be shown.
    pub(crate) fn view(self) -> Option<&'static str> {
        Some(match self {
            Self::Text => "code",
            Self::Markdown => "markdown",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Pdf => "pdf",
            Self::Table => "table",
            Self::Json => "json",
            Self::Notebook => "notebook",
            Self::Other => return None,
        })
    }

    /// The app that opens such a file. Writing is done in the editor; the rest is looked at.
    pub(crate) fn app(self) -> &'static str {
        match self {
            Self::Text | Self::Markdown | Self::Json => "editor",
            Self::Image
            | Self::Audio
            | Self::Video
            | Self::Pdf
            | Self::Table
            | Self::Notebook
            | Self::Other => "viewer",
        }
    }

    /// Whether its bytes are text.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Markdown | Self::Table | Self::Json | Self::Notebook)
    }
}

pub(crate) fn icon_for(name: &str) -> &'static str {
    match kind(name) {
        Kind::Text | Kind::Json => "file-code",
        Kind::Markdown | Kind::Pdf | Kind::Table | Kind::Notebook => "file-text",
        Kind::Image => "file-image",
        Kind::Audio => "file-music",
        Kind::Video => "file-play",
        Kind::Other => "file",
    }
}
