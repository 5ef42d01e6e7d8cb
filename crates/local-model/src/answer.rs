//! Splits the model's output into deltas: text, or a tool call and its arguments.
//!
//! With tools, the grammar allows only `{"name": …, "arguments": …}` or `{"say": …}`. The fixed prefix tells which
//! one it is. The text of `say` is passed on unescaped, the arguments verbatim.

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnswerDelta {
    Text(String),
    Call { name: String },
    Arguments(String),
}

const NAME: &[u8] = b"{\"name\": ";
const SAY: &[u8] = b"{\"say\": \"";
const ARGUMENTS: &[u8] = b", \"arguments\": ";

#[derive(Debug)]
enum ReaderStage {
    /// Plain text that is passed on unchanged.
    Plain,
    /// The prefix, which decides between `say` and a call.
    Head,
    Saying(Escape),
    Name,
    Arguments,
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    /// The value and the number of digits of a `\u` escape so far.
    Number(u32, u8),
}

/// Decodes an answer while the model writes it.
#[derive(Debug)]
pub(crate) struct AnswerReader {
    stage: ReaderStage,
    bytes: Vec<u8>,
    has_called: bool,
}

impl AnswerReader {
    pub(crate) fn plain() -> Self {
        Self::at(ReaderStage::Plain)
    }

    pub(crate) fn call_or_say() -> Self {
        Self::at(ReaderStage::Head)
    }

    fn at(stage: ReaderStage) -> Self {
        Self { stage, bytes: Vec::new(), has_called: false }
    }

    pub(crate) fn has_called(&self) -> bool {
        self.has_called
    }

    /// The deltas that these bytes complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<AnswerDelta> {
        self.bytes.extend_from_slice(bytes);
        let mut deltas = Vec::new();
        while self.step(&mut deltas) {}
        deltas
    }

    /// Consumes as many bytes as possible. Returns true if the next stage can continue with the rest.
    fn step(&mut self, deltas: &mut Vec<AnswerDelta>) -> bool {
        match self.stage {
            ReaderStage::Plain => {
                deltas.extend(whole(&mut self.bytes, usize::MAX).map(AnswerDelta::Text));
                false
            }
            ReaderStage::Head => {
                let next = [(SAY, ReaderStage::Saying(Escape::None)), (NAME, ReaderStage::Name)];
                let Some((head, stage)) = next.into_iter().find(|(head, _)| self.bytes.starts_with(head))
                else {
                    return false;
                };
                self.bytes.drain(..head.len());
                self.stage = stage;
                true
            }
            ReaderStage::Saying(escape) => self.say(escape, deltas),
            ReaderStage::Name => {
                let Some(end) = find(&self.bytes, ARGUMENTS) else { return false };
                let name = serde_json::from_slice(&self.bytes[..end]).unwrap_or_default();
                self.bytes.drain(..end + ARGUMENTS.len());
                deltas.push(AnswerDelta::Call { name });
                (self.stage, self.has_called) = (ReaderStage::Arguments, true);
                true
            }
            ReaderStage::Arguments => {
                // The last brace closes the call, not its arguments.
                let most = self.bytes.len().saturating_sub(1);
                deltas.extend(whole(&mut self.bytes, most).map(AnswerDelta::Arguments));
                false
            }
            ReaderStage::Over => false,
        }
    }

    fn say(&mut self, mut escape: Escape, deltas: &mut Vec<AnswerDelta>) -> bool {
        let mut said = Vec::new();
        let mut used = 0;
        let mut is_over = false;
        for byte in &self.bytes {
            used += 1;
            escape = match (escape, byte) {
                (Escape::None, b'"') => {
                    is_over = true;
                    break;
                }
                (Escape::None, b'\\') => Escape::Begun,
                (Escape::None, byte) => {
                    said.push(*byte);
                    Escape::None
                }
                (Escape::Begun, b'u') => Escape::Number(0, 0),
                (Escape::Begun, byte) => {
                    said.push(match byte {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'r' => b'\r',
                        b'b' => 8,
                        b'f' => 12,
                        other => *other,
                    });
                    Escape::None
                }
                (Escape::Number(value, digits), byte) => {
                    let value = value * 16 + char::from(*byte).to_digit(16).unwrap_or(0);
                    if digits < 3 {
                        Escape::Number(value, digits + 1)
                    } else {
                        let letter = char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER);
                        said.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                        Escape::None
                    }
                }
            };
        }
        // Keep an incomplete character until its remaining bytes arrive.
        let rest = self.bytes.split_off(used);
        let text = whole(&mut said, usize::MAX);
        self.bytes = said;
        self.bytes.extend(rest);
        deltas.extend(text.map(AnswerDelta::Text));
        self.stage = if is_over { ReaderStage::Over } else { ReaderStage::Saying(escape) };
        false
    }
}

/// Removes and returns the complete characters in the first `most` bytes.
fn whole(bytes: &mut Vec<u8>, most: usize) -> Option<String> {
    let most = most.min(bytes.len());
    let end = match std::str::from_utf8(&bytes[..most]) {
        Ok(_) => most,
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Invalid UTF-8: emit a replacement character instead of keeping the bytes for ever.
        Err(_) => most,
    };
    let taken: Vec<u8> = bytes.drain(..end).collect();
    (!taken.is_empty()).then(|| String::from_utf8_lossy(&taken).into_owned())
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The deltas of a text that arrives in pieces of this size, with adjacent ones joined.
    fn read(mut reader: AnswerReader, text: &str, size: usize) -> Vec<AnswerDelta> {
        let mut deltas: Vec<AnswerDelta> = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            for delta in reader.push(piece) {
                match (deltas.last_mut(), &delta) {
                    (Some(AnswerDelta::Text(before)), AnswerDelta::Text(more))
                    | (Some(AnswerDelta::Arguments(before)), AnswerDelta::Arguments(more)) => {
                        before.push_str(more)
                    }
                    _ => deltas.push(delta),
                }
            }
        }
        deltas
    }

    #[test]
    fn a_call_is_split_into_name_and_arguments() {
        let text = r#"{"name": "write", "arguments": {"path": "ä.txt", "deep": {"a": [1, {}]}}}"#;
        for size in 1..text.len() {
            let expected = [
                AnswerDelta::Call { name: "write".into() },
                AnswerDelta::Arguments(r#"{"path": "ä.txt", "deep": {"a": [1, {}]}}"#.into()),
            ];
            assert_eq!(read(AnswerReader::call_or_say(), text, size), expected, "{size}");
        }
    }

    #[test]
    fn text_is_unescaped() {
        let text = r#"{"say": "a \"b\"\n\tc\\d \u00e4 ü 🎵"}"#;
        for size in 1..text.len() {
            let expected = [AnswerDelta::Text("a \"b\"\n\tc\\d ä ü 🎵".into())];
            assert_eq!(read(AnswerReader::call_or_say(), text, size), expected, "{size}");
        }
    }

    #[test]
    fn plain_text_is_split_at_character_boundaries() {
        for size in 1..8 {
            assert_eq!(
                read(AnswerReader::plain(), "ä🎵{\"say\"", size),
                [AnswerDelta::Text("ä🎵{\"say\"".into())]
            );
        }
    }

    #[test]
    fn incomplete_text_is_kept() {
        assert_eq!(
            read(AnswerReader::call_or_say(), r#"{"say": "half a sen"#, 3),
            [AnswerDelta::Text("half a sen".into())]
        );
    }
}
