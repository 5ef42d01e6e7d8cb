//! What the model writes, as it is told to whoever asked: text, or a call with its arguments, piece by piece.
//!
//! With tools the grammar allows exactly `{"name": …, "arguments": …}` or `{"say": …}`, so a few fixed words tell which
//! it is, and the rest is passed on as it comes: a text without its escapes, arguments as they are.

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delta {
    Text(String),
    Call { name: String },
    Arguments(String),
}

const NAME: &[u8] = b"{\"name\": ";
const SAY: &[u8] = b"{\"say\": \"";
const ARGUMENTS: &[u8] = b", \"arguments\": ";

#[derive(Debug)]
enum Stage {
    /// Text that means itself.
    Plain,
    /// The beginning, which tells what follows.
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
    /// A number of four digits, as far as it has come.
    Number(u32, u8),
}

/// Reads an answer as it is written.
#[derive(Debug)]
pub(crate) struct Reader {
    stage: Stage,
    bytes: Vec<u8>,
    has_called: bool,
}

impl Reader {
    pub(crate) fn plain() -> Self {
        Self::at(Stage::Plain)
    }

    pub(crate) fn call_or_say() -> Self {
        Self::at(Stage::Head)
    }

    fn at(stage: Stage) -> Self {
        Self { stage, bytes: Vec::new(), has_called: false }
    }

    pub(crate) fn has_called(&self) -> bool {
        self.has_called
    }

    /// What these bytes add to the answer.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Delta> {
        self.bytes.extend_from_slice(bytes);
        let mut deltas = Vec::new();
        while self.step(&mut deltas) {}
        deltas
    }

    /// Goes on as far as the bytes reach; whether another stage begins.
    fn step(&mut self, deltas: &mut Vec<Delta>) -> bool {
        match self.stage {
            Stage::Plain => {
                deltas.extend(whole(&mut self.bytes, usize::MAX).map(Delta::Text));
                false
            }
            Stage::Head => {
                let next = [(SAY, Stage::Saying(Escape::None)), (NAME, Stage::Name)];
                let Some((head, stage)) = next.into_iter().find(|(head, _)| self.bytes.starts_with(head))
                else {
                    return false;
                };
                self.bytes.drain(..head.len());
                self.stage = stage;
                true
            }
            Stage::Saying(escape) => self.say(escape, deltas),
            Stage::Name => {
                let Some(end) = find(&self.bytes, ARGUMENTS) else { return false };
                let name = serde_json::from_slice(&self.bytes[..end]).unwrap_or_default();
                self.bytes.drain(..end + ARGUMENTS.len());
                deltas.push(Delta::Call { name });
                (self.stage, self.has_called) = (Stage::Arguments, true);
                true
            }
            Stage::Arguments => {
                // The last brace closes the call, not its arguments.
                let most = self.bytes.len().saturating_sub(1);
                deltas.extend(whole(&mut self.bytes, most).map(Delta::Arguments));
                false
            }
            Stage::Over => false,
        }
    }

    fn say(&mut self, mut escape: Escape, deltas: &mut Vec<Delta>) -> bool {
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
        // A character that is cut in two waits for its rest.
        let rest = self.bytes.split_off(used);
        let text = whole(&mut said, usize::MAX);
        self.bytes = said;
        self.bytes.extend(rest);
        deltas.extend(text.map(Delta::Text));
        self.stage = if is_over { Stage::Over } else { Stage::Saying(escape) };
        false
    }
}

/// Takes the whole characters out of the first `most` bytes.
fn whole(bytes: &mut Vec<u8>, most: usize) -> Option<String> {
    let most = most.min(bytes.len());
    let end = match std::str::from_utf8(&bytes[..most]) {
        Ok(_) => most,
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Not the beginning of any character: it is shown as such rather than kept for ever.
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

    /// The deltas of a text that comes in pieces of this size, with neighbours joined.
    fn read(mut reader: Reader, text: &str, size: usize) -> Vec<Delta> {
        let mut deltas: Vec<Delta> = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            for delta in reader.push(piece) {
                match (deltas.last_mut(), &delta) {
                    (Some(Delta::Text(before)), Delta::Text(more))
                    | (Some(Delta::Arguments(before)), Delta::Arguments(more)) => before.push_str(more),
                    _ => deltas.push(delta),
                }
            }
        }
        deltas
    }

    #[test]
    fn a_call_comes_as_its_name_and_its_arguments() {
        let text = r#"{"name": "write", "arguments": {"path": "ä.txt", "deep": {"a": [1, {}]}}}"#;
        for size in 1..text.len() {
            let expected = [
                Delta::Call { name: "write".into() },
                Delta::Arguments(r#"{"path": "ä.txt", "deep": {"a": [1, {}]}}"#.into()),
            ];
            assert_eq!(read(Reader::call_or_say(), text, size), expected, "{size}");
        }
    }

    #[test]
    fn words_come_without_their_escapes() {
        let text = r#"{"say": "a \"b\"\n\tc\\d \u00e4 ü 🎵"}"#;
        for size in 1..text.len() {
            let expected = [Delta::Text("a \"b\"\n\tc\\d ä ü 🎵".into())];
            assert_eq!(read(Reader::call_or_say(), text, size), expected, "{size}");
        }
    }

    #[test]
    fn plain_text_comes_in_whole_characters() {
        for size in 1..8 {
            assert_eq!(read(Reader::plain(), "ä🎵{\"say\"", size), [Delta::Text("ä🎵{\"say\"".into())]);
        }
    }

    #[test]
    fn words_that_break_off_are_kept_so_far() {
        assert_eq!(
            read(Reader::call_or_say(), r#"{"say": "half a sen"#, 3),
            [Delta::Text("half a sen".into())]
        );
    }
}
