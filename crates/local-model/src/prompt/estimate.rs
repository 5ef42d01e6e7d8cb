//! How many tokens a prompt has, about, without the weights that know.

use serde_json::Value;

use super::{Piece, render};
use crate::engine::manner;
use crate::wire::Request;

/// Letters of a word that are one token in all likelihood.
const LETTERS: usize = 7;

/// About how many tokens the prompt of a request for chat completions has, written with its tools as the child writes it;
/// rather too many than too few. Nothing for what is no such request.
pub fn estimate_tokens(request: &Value) -> Option<usize> {
    let request: Request = serde_json::from_value(request.clone()).ok()?;
    let pieces = render(&request.messages, &request.tools, manner(&request));
    let count = |piece: &Piece| match piece {
        Piece::Mark(_) => 1,
        Piece::Text(text) => tokens(text),
    };
    Some(pieces.iter().map(count).sum())
}

/// Words, digits, and runs of everything else, as the tokenizer cuts them before it looks them up.
fn tokens(text: &str) -> usize {
    let (mut count, mut letters, mut before) = (0, 0, ' ');
    for letter in text.chars() {
        if letter.is_ascii_alphabetic() {
            count += usize::from(letters % LETTERS == 0);
            letters += 1;
        } else {
            letters = 0;
            // A blank belongs to the word after it; signs come in pairs more often than not.
            let is_alone = letter.is_numeric() || !letter.is_ascii() || letter == '\n';
            count += usize::from(is_alone || (letter != ' ' && !before.is_ascii_punctuation()));
        }
        before = letter;
    }
    count
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_digits_and_signs_are_counted() {
        for (text, expected) in
            [("", 0), ("Hello world", 2), ("in 2026", 5), ("a: b\n", 4), ("internationalization", 3)]
        {
            assert_eq!(tokens(text), expected, "{text}");
        }
    }

    #[test]
    fn a_request_is_counted_with_its_tools() {
        let mut request = json!({ "messages": [{ "role": "user", "content": "Hi" }] });
        let without = estimate_tokens(&request).unwrap();
        request["tools"] = json!([{ "function": { "name": "read", "description": "The text of a file." } }]);
        assert!(estimate_tokens(&request).unwrap() > without + 10);
        assert_eq!(estimate_tokens(&json!({ "prompt": "Hi" })), None);
    }
}
