//! Removes keys from error messages: some servers repeat the key that they reject.

use crate::ApiKey;

const MASK: &str = "•••";
/// Prefixes of the known providers' keys.
const KEY_PREFIXES: [&str; 6] = ["sk-", "sk_", "AKIA", "ASIA", "ABSK", "bedrock-api-key-"];
/// Shorter parts of a key are not masked: they could be ordinary words.
const SHORTEST_PART: usize = 6;

/// Masks the key, its parts, and anything that looks like a key.
pub(crate) fn mask(text: &str, key: Option<&ApiKey>) -> String {
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

/// Masks `piece`, a word with the separator after it, if it looks like a key.
fn mask_lookalike(piece: &str) -> String {
    match KEY_PREFIXES.iter().any(|prefix| piece.starts_with(prefix)) && piece.len() > 8 {
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
    fn whole_keys_parts_of_keys_and_lookalikes_are_masked() {
        let cases = [
            ("plain", "wrong key: my-own-key-123, sorry", "wrong key: •••, sorry"),
            ("in parts", "id AKIDEXAMPLE sent SECRETVALUE", "id ••• sent •••"),
            ("cut by the server", "provided: sk-proj-abc***wxyz. You", "provided: ••• You"),
            ("another's", "AKIAIOSFODNN7EXAMPLE is unknown", "••• is unknown"),
            ("words", "ask-me sk-8 no key", "ask-me sk-8 no key"),
        ];
        for (name, text, masked) in cases {
            let key = match name {
                "in parts" => ApiKey::new("AKIDEXAMPLE:SECRETVALUE"),
                _ => ApiKey::new("my-own-key-123"),
            };
            assert_eq!(mask(text, Some(&key)), masked, "{name}");
        }
    }

    #[test]
    fn the_debug_output_of_a_key_hides_it() {
        assert_eq!(format!("{:?}", ApiKey::new("sk-very-secret")), "ApiKey(…)");
    }
}
