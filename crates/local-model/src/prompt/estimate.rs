//! Estimates the number of tokens of a prompt without the weights.

use serde_json::Value;

use super::{PromptPiece, render};
use crate::answer_mode::answer_mode;
use crate::wire::CompletionRequest;

/// A word of up to this many letters is usually one token.
const LETTERS: usize = 7;

/// Estimates the tokens of the prompt of a chat completions request, including the tools, rounded towards too many.
/// `None` if `request` is not valid.
pub fn estimate_tokens(request: &Value) -> Option<usize> {
    let request: CompletionRequest = serde_json::from_value(request.clone()).ok()?;
    let pieces = render(&request.messages, &request.tools, answer_mode(&request));
    let count = |piece: &PromptPiece| match piece {
        PromptPiece::Mark(_) => 1,
        PromptPiece::Text(text) => tokens(text),
    };
    Some(pieces.iter().map(count).sum())
}

/// Counts words, digits and runs of other characters, as the tokenizer splits them.
fn tokens(text: &str) -> usize {
    let (mut count, mut letters, mut before) = (0, 0, ' ');
    for letter in text.chars() {
        if letter.is_ascii_alphabetic() {
            count += usize::from(letters % LETTERS == 0);
            letters += 1;
        } else {
            letters = 0;
            // A space belongs to the next word; punctuation often comes in pairs.
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
    fn words_digits_and_punctuation_are_counted() {
        for (text, expected) in
            [("", 0), ("Hello world", 2), ("in 2026", 5), ("a: b\n", 4), ("internationalization", 3)]
        {
            assert_eq!(tokens(text), expected, "{text}");
        }
    }

    #[test]
    fn the_estimate_includes_the_tools() {
        let mut request = json!({ "messages": [{ "role": "user", "content": "Hi" }] });
        let without = estimate_tokens(&request).unwrap();
        request["tools"] = json!([{ "function": { "name": "read", "description": "The text of a file." } }]);
        assert!(estimate_tokens(&request).unwrap() > without + 10);
        assert_eq!(estimate_tokens(&json!({ "prompt": "Hi" })), None);
    }
}
