//! Decoding: from a stored event to one that the kernel can work with.

use shared_types::payload::file::FileEvent;
use shared_types::{Event, Payload, StoredEvent};

use crate::log::read_content;
use crate::{EventLog, ReadError};

/// Decodes an event and attaches the list of a `file.batch`, which is content of the log.
pub fn decode_event(log: &dyn EventLog, stored: &StoredEvent<'_>) -> Result<Event, ReadError> {
    let seq = stored.seq;
    let mut event = stored.decode().map_err(|source| ReadError::Undecodable { seq, source })?;
    if let Payload::File(FileEvent::Batch(batch)) = &mut event.payload {
        let list =
            read_content(log, &batch.list.hash).map_err(|source| ReadError::BatchContent { seq, source })?;
        batch.attach(&list).map_err(|source| ReadError::Batch { seq, source })?;
    }
    Ok(event)
}
