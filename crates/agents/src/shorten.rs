//! Texts cut to a length.

/// Texts that exceed their limit by less than this are not cut: that would save nothing.
pub(crate) const MIN_CUT: usize = 120;

/// Cuts the middle out of a text that is longer than `limit` bytes. `mark` describes the bytes that are missing.
pub(crate) fn shortened(text: &str, limit: usize, mark: impl FnOnce(usize) -> String) -> String {
    if text.len() <= limit + MIN_CUT {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(limit / 5 * 3);
    let tail = text.ceil_char_boundary(text.len() - limit / 5 * 2);
    format!("{}\n{}\n{}", &text[..head], mark(tail - head), &text[tail..])
}

/// The first line of a text, short enough for a list.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("…");
    let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.len() <= 200 { line } else { format!("{}…", &line[..line.floor_char_boundary(199)]) }
}
