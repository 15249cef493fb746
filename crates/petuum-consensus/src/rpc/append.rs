//! The receiving end of an append stream: wire records in, openraft's answers out. A request that cannot be read ends
//! the stream with a status that says why; nothing of it, and nothing after it, is appended.

use crate::frame;
use crate::record::{AppendAnswer, AppendHead};
use crate::state::Raft;
use crate::types::AppendRequest;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use petuum_net::wire::RaftRecord;
use petuum_types::codec;
use std::sync::{Arc, Mutex};
use tonic::{Status, Streaming};

/// Must be called within `Rt::scope`: openraft spawns a task.
pub(super) fn serve(raft: &Raft, requests: Streaming<RaftRecord>) -> BoxStream<'static, Result<RaftRecord, Status>> {
    let broken = Arc::new(Mutex::new(None));
    let noted = broken.clone();
    let readable = requests.scan((), move |(), record| {
        let request = record.and_then(|record| decode(&record));
        let noted = &noted;
        std::future::ready(
            request.map_err(|status| *noted.lock().expect("nothing panics while it is held") = Some(status)).ok(),
        )
    });
    let answers = raft.stream_append(readable).boxed();
    let encoded = answers.map(|answer| match answer {
        Ok(result) => {
            let record = codec::encode(&AppendAnswer::from(&result)).into();
            Ok(RaftRecord { record, entries: Vec::new() })
        }
        Err(fatal) => Err(super::unavailable(fatal)),
    });
    let end = stream::once(async move { broken.lock().expect("nothing panics while it is held").take() });
    encoded.chain(end.filter_map(std::future::ready).map(Err)).boxed()
}

/// Reads a request. Entries keep the bytes they came in.
pub(crate) fn decode(record: &RaftRecord) -> Result<AppendRequest, Status> {
    let head: AppendHead =
        codec::decode(&record.record).map_err(|error| Status::invalid_argument(error.to_string()))?;
    let entries = (head.first_index()..).zip(&record.entries).map(|(index, stored)| {
        frame::decode(index, stored).map_err(|error| Status::data_loss(format!("in an append request: {error}")))
    });
    Ok(AppendRequest {
        vote: head.vote.into(),
        prev_log_id: head.previous_id(),
        leader_commit: head.committed_id(),
        entries: entries.collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::encode_append;
    use crate::record::{Ballot, Position};
    use crate::types::{Entry, LogId, Payload};
    use bytes::Bytes;
    use openraft::EntryPayload;

    fn at(term: u64, index: u64) -> LogId {
        Position { term, index }.into()
    }

    fn example() -> AppendRequest {
        let payload = EntryPayload::Normal(Payload::new(Bytes::from_static(b"body")));
        AppendRequest {
            vote: Ballot { term: 2, node: 1, committed: true }.into(),
            prev_log_id: Some(at(1, 4)),
            leader_commit: Some(at(1, 3)),
            entries: vec![
                Entry { log_id: at(2, 5), payload: EntryPayload::Blank },
                Entry { log_id: at(2, 6), payload },
            ],
        }
    }

    #[test]
    fn golden() {
        let record = encode_append(&example());
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(&record.record), "01020101010104010103");
        let golden = [
            "53e66ffe0100000000000000000000020000000000000005",
            "d4fc4ded0101000000000000000000020000000000000006626f6479",
        ];
        assert_eq!(record.entries.iter().map(|entry| hex(entry)).collect::<Vec<_>>(), golden);
        assert_eq!(encode_append(&decode(&record).unwrap()), record);
    }

    #[test]
    fn an_entry_of_another_place_or_with_a_flipped_bit_is_refused() {
        let mut record = encode_append(&example());
        record.entries.swap(0, 1);
        let status = decode(&record).unwrap_err();
        assert!(status.message().contains("index 6 where index 5 belongs"), "{status}");
        let mut record = encode_append(&example());
        let mut flipped = record.entries[1].to_vec();
        *flipped.last_mut().unwrap() ^= 1;
        record.entries[1] = flipped.into();
        assert_eq!(decode(&record).unwrap_err().code(), tonic::Code::DataLoss);
    }
}
