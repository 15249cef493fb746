//! What one entry of a shard's log holds: messages of workers that waited together (P8), or one command of a driver.
//!
//! ```text
//! version u8 = 1 | kind u8 | 0 u16 | count u32 | (length u32 | message) × count      kind 1: worker messages
//! version u8 = 1 | kind u8 | 0 u16 | 1 u32     | record of a ShardCommand             kind 2: command
//! ```

use crate::codec;
use crate::command::ShardCommand;
use crate::message::{self, WorkerMessage};
use bytes::{Buf, BufMut, Bytes, BytesMut};

const VERSION: u8 = 1;
const MESSAGES: u8 = 1;
const COMMAND: u8 = 2;
/// Bytes before the first message.
pub const HEADER_BYTES: usize = 8;
/// Bytes an entry spends on each message besides the message.
pub const MESSAGE_OVERHEAD_BYTES: usize = 4;

/// An entry, decoded. Messages share the entry's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Messages of workers, in order.
    Messages(Vec<WorkerMessage>),
    /// A driver's command.
    Command(ShardCommand),
}

/// Why bytes are no entry. In a log this means damage or a newer version, and the group stops.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Cut short or too long.
    #[error("a log entry of {0} bytes whose lengths do not add up")]
    Length(usize),
    /// Version or kind unknown.
    #[error("a log entry of version {version}, kind {kind}; this version reads version {VERSION}, kinds 1 and 2")]
    Unknown {
        /// The version byte.
        version: u8,
        /// The kind byte.
        kind: u8,
    },
    /// A message in it is malformed.
    #[error(transparent)]
    Message(#[from] message::Malformed),
    /// The command in it is malformed.
    #[error(transparent)]
    Command(#[from] codec::Error),
}

fn header(kind: u8, count: usize, body: usize) -> BytesMut {
    let mut out = BytesMut::with_capacity(HEADER_BYTES + body);
    out.put_u8(VERSION);
    out.put_u8(kind);
    out.put_u16_le(0);
    out.put_u32_le(u32::try_from(count).expect("an entry has fewer than 2^32 messages"));
    out
}

/// An entry of encoded messages.
#[must_use]
pub fn encode_messages(messages: &[Bytes]) -> Bytes {
    let body = messages.iter().map(|m| MESSAGE_OVERHEAD_BYTES + m.len()).sum();
    let mut out = header(MESSAGES, messages.len(), body);
    for message in messages {
        out.put_u32_le(u32::try_from(message.len()).expect("a message is far below 4 GiB"));
        out.put_slice(message);
    }
    out.freeze()
}

/// An entry of one command.
#[must_use]
pub fn encode_command(command: &ShardCommand) -> Bytes {
    let record = codec::encode(command);
    let mut out = header(COMMAND, 1, record.len());
    out.put_slice(&record);
    out.freeze()
}

impl Entry {
    /// Reads an entry.
    ///
    /// # Errors
    /// [`Malformed`], never a panic, whatever the bytes.
    pub fn decode(entry: &Bytes) -> Result<Self, Malformed> {
        let length = || Malformed::Length(entry.len());
        let head: &[u8; HEADER_BYTES] = entry.first_chunk().ok_or_else(length)?;
        let count = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let mut rest = entry.slice(HEADER_BYTES..);
        match (head[0], head[1]) {
            (VERSION, COMMAND) => Ok(Self::Command(codec::decode(&rest)?)),
            (VERSION, MESSAGES) => {
                // No capacity from the count: it is not to be believed before the bytes are there.
                let mut messages = Vec::new();
                for _ in 0..count {
                    let bytes = rest.try_get_u32_le().map_err(|_| length())? as usize;
                    if bytes > rest.len() {
                        return Err(length());
                    }
                    messages.push(WorkerMessage::decode(&rest.split_to(bytes))?);
                }
                if rest.is_empty() { Ok(Self::Messages(messages)) } else { Err(length()) }
            }
            (version, kind) => Err(Malformed::Unknown { version, kind }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::WorkerKey;
    use crate::message::{Kind, tests::example};
    use crate::{Clock, Generation, Incarnation, JobId, TableId, WorkerId};

    #[test]
    fn messages_round_trip_and_every_cut_is_refused() {
        let messages = [example(Kind::Stage, b"one"), example(Kind::Tick, b""), example(Kind::StageTick, b"two")];
        let encoded: Vec<Bytes> = messages.iter().map(WorkerMessage::encode).collect();
        let entry = encode_messages(&encoded);
        assert_eq!(Entry::decode(&entry).unwrap(), Entry::Messages(messages.to_vec()));
        for end in 0..entry.len() {
            assert!(Entry::decode(&entry.slice(..end)).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn golden_commands() {
        let worker = WorkerKey { job: JobId(1), generation: Generation(1), worker: WorkerId(2) };
        let golden = [
            (ShardCommand::DropTable(TableId(300)), "01020000010000000103fb2c01"),
            (
                ShardCommand::Fence { worker, incarnation: Incarnation(4), admit: true },
                "0102000001000000010401010204 01",
            ),
            (
                ShardCommand::Settle { worker, incarnation: Incarnation(4), clock: Clock(9), keep: false },
                "010200000100000001050101020409 00",
            ),
        ];
        for (command, hex) in golden {
            let entry = encode_command(&command);
            assert_eq!(entry.iter().map(|b| format!("{b:02x}")).collect::<String>(), hex.replace(' ', ""));
            assert_eq!(Entry::decode(&entry).unwrap(), Entry::Command(command));
        }
    }
}
