//! Keys do not stand in messages, whoever wrote them: some servers repeat the key that they refuse.

use crate::Secret;

const MASK: &str = "•••";
/// How keys of the known providers begin.
const KEY_BEGINNINGS: [&str; 6] = ["sk-", "sk_", "AKIA", "ASIA", "ABSK", "bedrock-api-key-"];
/// Shorter parts of a key could be anything.
const SHORTEST_PART: usize = 6;

/// The text without the key, its parts, and anything that looks like a key.
pub(crate) fn mask(text: &str, key: Option<&Secret>) -> String {
    let mut text = text.to_owned();
    if let Some(key) = key {
        let whole = key.expose();
        let parts = std::iter::once(whole).chain(whole.split(':'));
        for part in parts.map(str::trim).filter(|part| part.len() >= SHORTEST_PART) {
            text = text.replace(part, MASK);
        }
    }
    let pieces = text.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || "-_*.+/=".contains(c)));
    pieces.map(mask_lookalike).collect()
}

/// A word, with the one character that ends it.
fn mask_lookalike(piece: &str) -> String {
    match KEY_BEGINNINGS.iter().any(|beginning| piece.starts_with(beginning)) && piece.len() > 8 {
        true => {
            let end =
                piece.chars().next_back().filter(|c| !c.is_ascii_alphanumeric() && !"-_*.+/=".contains(*c));
            end.map_or(MASK.into(), |end| format!("{MASK}{end}"))
        }
        false => piece.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_masked_whole_in_parts_and_by_their_looks() {
        let cases = [
            ("plain", "wrong key: my-own-key-123, sorry", "wrong key: •••, sorry"),
            ("in parts", "id AKIDEXAMPLE sent SECRETVALUE", "id ••• sent •••"),
            ("cut by the server", "provided: sk-proj-abc***wxyz. You", "provided: ••• You"),
            ("another's", "AKIAIOSFODNN7EXAMPLE is unknown", "••• is unknown"),
            ("words", "ask-me sk-8 no key", "ask-me sk-8 no key"),
        ];
        for (name, text, masked) in cases {
            let key = match name {
                "in parts" => Secret::new("AKIDEXAMPLE:SECRETVALUE"),
                _ => Secret::new("my-own-key-123"),
            };
            assert_eq!(mask(text, Some(&key)), masked, "{name}");
        }
    }

    #[test]
    fn a_secret_has_no_readable_debug() {
        assert_eq!(format!("{:?}", Secret::new("sk-very-secret")), "Secret(…)");
    }
}
