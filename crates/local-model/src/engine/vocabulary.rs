//! The vocabulary: the tokenizer that comes with the weights.

use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::quantized::tokenizer::TokenizerFromGguf;
use thiserror::Error;
use tokenizers::Tokenizer;

use crate::prompt::PromptPiece;

/// Why text could not be tokenized.
#[derive(Debug, Error)]
pub(crate) enum VocabularyError {
    #[error("the weights contain no supported tokenizer")]
    Unknown(#[source] candle_core::Error),
    #[error("the tokenizer failed: {0}")]
    Refused(String),
    #[error("the weights have no {0}")]
    Missing(String),
}

/// The meaning of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Meaning {
    Bytes(Box<[u8]>),
    /// A control token, such as the end of a turn.
    Control,
}

/// All tokens of a model.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    tokenizer: Tokenizer,
    meanings: Vec<Meaning>,
    ends: Vec<u32>,
}

impl Vocabulary {
    pub(crate) fn read(content: &Content) -> Result<Self, VocabularyError> {
        let mut tokenizer = Tokenizer::from_gguf(content).map_err(VocabularyError::Unknown)?;
        // Text from users stays text, even if it looks like a control token.
        tokenizer.set_encode_special_tokens(true);
        let list = |key: &str| match content.metadata.get(key) {
            Some(Value::Array(values)) => Ok(values),
            _ => Err(VocabularyError::Missing(key.into())),
        };
        let types = list("tokenizer.ggml.token_type")?;
        let unmap = byte_alphabet();
        let meaning = |(index, word): (usize, &Value)| {
            let is_text = types.get(index).and_then(number).is_some_and(|kind| kind == 1);
            match word.to_string() {
                Ok(word) if is_text => Meaning::Bytes(word.chars().filter_map(&unmap).collect()),
                _ => Meaning::Control,
            }
        };
        let meanings: Vec<_> = list("tokenizer.ggml.tokens")?.iter().enumerate().map(meaning).collect();
        let ends: Vec<u32> =
            ["<|im_end|>", "<|endoftext|>"].iter().filter_map(|end| tokenizer.token_to_id(end)).collect();
        if ends.is_empty() {
            return Err(VocabularyError::Missing("end of a turn".into()));
        }
        Ok(Self { tokenizer, meanings, ends })
    }

    pub(crate) fn is_end(&self, token: u32) -> bool {
        self.ends.contains(&token)
    }

    /// The bytes of a token; `None` for control tokens and unknown ids.
    pub(crate) fn bytes(&self, token: u32) -> Option<&[u8]> {
        match self.meanings.get(token as usize)? {
            Meaning::Bytes(bytes) => Some(bytes),
            Meaning::Control => None,
        }
    }

    pub(crate) fn tokens(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        let encoded = self.tokenizer.encode_fast(text, false);
        encoded.map(|encoded| encoded.get_ids().to_vec()).map_err(|e| VocabularyError::Refused(e.to_string()))
    }

    /// Tokenizes a prompt: marks become control tokens, the rest is plain text.
    pub(crate) fn prompt(&self, pieces: &[PromptPiece]) -> Result<Vec<u32>, VocabularyError> {
        let mut tokens = Vec::new();
        for piece in pieces {
            match piece {
                PromptPiece::Mark(mark) => tokens.push(
                    self.tokenizer
                        .token_to_id(mark)
                        .ok_or_else(|| VocabularyError::Missing((*mark).into()))?,
                ),
                PromptPiece::Text(text) => tokens.extend(self.tokens(text)?),
            }
        }
        Ok(tokens)
    }
}

fn number(value: &Value) -> Option<i64> {
    value.to_i32().map(i64::from).or_else(|_| value.to_u32().map(i64::from)).ok()
}

/// Maps the characters of GPT-2's byte alphabet to bytes: printable bytes map to themselves, the others start at
/// U+0100.
fn byte_alphabet() -> impl Fn(char) -> Option<u8> {
    let plain = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let moved: Vec<u8> = (0..=u8::MAX).filter(|byte| !plain(*byte)).collect();
    move |letter| match u8::try_from(u32::from(letter)) {
        Ok(byte) if plain(byte) => Some(byte),
        _ => moved.get((u32::from(letter).checked_sub(0x100)?) as usize).copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_alphabet_is_decoded() {
        let unmap = byte_alphabet();
        let bytes = |text: &str| text.chars().filter_map(&unmap).collect::<Vec<u8>>();
        assert_eq!(bytes("ĠtheĊ"), b" the\n");
        assert_eq!(bytes("Ã¼"), "ü".as_bytes());
    }
}
