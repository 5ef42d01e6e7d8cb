//! Decodes server-sent events from bytes that are split anywhere.

/// One event. Its name is empty if the server sent none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) data: String,
}

#[derive(Debug, Default)]
pub(super) struct EventDecoder {
    /// Bytes of an incomplete line.
    buffer: Vec<u8>,
    current: Event,
}

impl EventDecoder {
    /// Takes the next bytes and returns the events that they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        self.buffer.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(length) = self.buffer[start..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.buffer[start..start + length]).into_owned();
            start += length + 1;
            events.extend(self.line(line.trim_end_matches('\r')));
        }
        self.buffer.drain(..start);
        events
    }

    /// An empty line ends an event. Events without data are ignored.
    fn line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.current);
            return (!event.data.is_empty()).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" if self.current.data.is_empty() => self.current.data = value.into(),
            "data" => {
                self.current.data.push('\n');
                self.current.data.push_str(value);
            }
            "event" => self.current.name = value.into(),
            // Comments, ids and reconnection times.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.into(), data: data.into() }
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_split() {
        let text = ": hello\r\n\r\nevent: start\r\ndata: {\"a\":\"ü€\"}\r\n\r\ndata: one\ndata:two\nid: 3\n\ndata: [DONE]\n\ndata: cut";
        let expected = [event("start", "{\"a\":\"ü€\"}"), event("", "one\ntwo"), event("", "[DONE]")];
        for size in 1..text.len() {
            let mut events = EventDecoder::default();
            let found: Vec<Event> =
                text.as_bytes().chunks(size).flat_map(|bytes| events.push(bytes)).collect();
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }
}
