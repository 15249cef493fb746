//! Append streams: many requests in flight, answered in order.
//!
//! Everything happens in one `poll`, which only openraft's own replication task calls:
//!
//! ```text
//!  input (openraft: reads the log) ──► window: ≤ 32 requests, ≤ 8 MiB ──► body ──► peer
//!                                       │ deadline, only while something is in flight
//!  output (to openraft) ◄───────────────┴──────────────────────────────── answers
//! ```
//!
//! * The call is opened only after the first request was taken from `input`; openraft waits out its backoff in
//!   there, so a peer that refuses connections is not asked in a loop.
//! * `input` is never handed to tonic or another task. They would go on polling it after openraft gave the session
//!   up, and read log that is purged by then, which ends the leader's group.
//! * The deadline is one of progress. Time without a request in flight does not count.
//!
//! A stream that ends in good order is kept for the task's next one: a heartbeat is then one message each way.

use super::{Network, decode};
use crate::frame;
use crate::record::{AppendAnswer, AppendHead, position};
use crate::types::{AppendRequest, AppendResult, Types};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use openraft::OptionalSend;
use openraft::RPCTypes;
use openraft::errors::{NetworkError, RPCError, Unreachable};
use openraft::network::{NetStreamAppend, RPCOption};
use petuum_net::wire::RaftRecord;
use petuum_types::codec;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Response, Status, Streaming};

type Item = Result<AppendResult, RPCError<Types>>;
type Opening = BoxFuture<'static, Result<Response<Streaming<RaftRecord>>, Status>>;

/// An open stream with nothing in flight.
pub(super) struct Session {
    body: mpsc::Sender<RaftRecord>,
    answers: Streaming<RaftRecord>,
}

impl Session {
    /// Whether the peer has neither ended it nor said anything unasked.
    fn is_idle(&mut self) -> bool {
        self.answers.poll_next_unpin(&mut Context::from_waker(Waker::noop())).is_pending()
    }
}

enum Phase {
    /// Nothing was asked for yet.
    Closed,
    Opening(mpsc::Sender<RaftRecord>, Opening),
    Open(Box<Session>),
    /// Over; nothing is polled any more.
    Ended,
}

struct Flow<'s, S> {
    network: &'s mut Network,
    /// `None` when it has ended.
    input: Option<S>,
    phase: Phase,
    /// Bytes of each request in flight, oldest first.
    in_flight: VecDeque<usize>,
    bytes: usize,
    deadline: Pin<Box<Sleep>>,
}

impl NetStreamAppend<Types> for Network {
    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        _option: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, Item>, RPCError<Types>>>
    where
        S: Stream<Item = AppendRequest> + OptionalSend + Unpin + 'static,
    {
        let deadline = Box::pin(tokio::time::sleep(self.node.settings.append_timeout));
        let (in_flight, bytes) = (VecDeque::new(), 0);
        let mut flow = Flow { network: self, input: Some(input), phase: Phase::Closed, in_flight, bytes, deadline };
        let output: BoxStream<'s, Item> = futures::stream::poll_fn(move |cx| flow.poll(cx)).boxed();
        Box::pin(std::future::ready(Ok(output)))
    }
}

impl<S: Stream<Item = AppendRequest> + Unpin> Flow<'_, S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        if matches!(self.phase, Phase::Ended) {
            return Poll::Ready(None);
        }
        if let Err(error) = self.take_requests(cx) {
            return self.fail(error);
        }
        match self.poll_answer(cx) {
            Poll::Ready(Ok(answer)) => {
                if answer.is_err() {
                    // The peer ends its stream with this one.
                    self.phase = Phase::Ended;
                }
                return Poll::Ready(Some(Ok(answer)));
            }
            Poll::Ready(Err(error)) => return self.fail(error),
            Poll::Pending => {}
        }
        if !self.in_flight.is_empty() {
            if self.deadline.as_mut().poll(cx).is_ready() {
                let limit = self.network.node.settings.append_timeout;
                return self.fail(self.network.timeout(RPCTypes::AppendEntries, limit).into());
            }
        } else if self.input.is_none() {
            if let Phase::Open(session) = std::mem::replace(&mut self.phase, Phase::Ended) {
                self.network.session = Some(session);
            }
            return Poll::Ready(None);
        }
        Poll::Pending
    }

    fn fail(&mut self, error: RPCError<Types>) -> Poll<Option<Item>> {
        self.phase = Phase::Ended;
        Poll::Ready(Some(Err(error)))
    }

    /// Sends what there is room for.
    fn take_requests(&mut self, cx: &mut Context<'_>) -> Result<(), RPCError<Types>> {
        let settings = &self.network.node.settings;
        let (window, window_bytes) = (settings.append_window, settings.append_window_bytes);
        while self.in_flight.len() < window && (self.bytes < window_bytes || self.in_flight.is_empty()) {
            let Some(input) = &mut self.input else { break };
            match input.poll_next_unpin(cx) {
                Poll::Pending => break,
                Poll::Ready(None) => self.input = None,
                Poll::Ready(Some(request)) => self.send(&request)?,
            }
        }
        Ok(())
    }

    fn send(&mut self, request: &AppendRequest) -> Result<(), RPCError<Types>> {
        let record = encode_append(request);
        let bytes = record.entries.iter().map(bytes::Bytes::len).sum();
        let body = self.body()?;
        // There is room for a whole window, so this fails only if the stream broke; its answers say why.
        if body.try_send(record).is_err() {
            tracing::debug!(envelope = ?self.network.envelope, "an append stream broke");
        }
        if self.in_flight.is_empty() {
            self.restart_deadline();
        }
        self.in_flight.push_back(bytes);
        self.bytes += bytes;
        Ok(())
    }

    fn body(&mut self) -> Result<&mpsc::Sender<RaftRecord>, RPCError<Types>> {
        if matches!(self.phase, Phase::Closed) {
            let mut kept = self.network.session.take();
            if kept.as_mut().is_some_and(|session| !session.is_idle()) {
                kept = None;
            }
            self.phase = kept.map_or_else(|| self.network.open(), |session| Ok(Phase::Open(session)))?;
        }
        match &self.phase {
            Phase::Opening(body, _) => Ok(body),
            Phase::Open(session) => Ok(&session.body),
            Phase::Closed | Phase::Ended => unreachable!("it was just opened, and nothing is sent after the end"),
        }
    }

    fn restart_deadline(&mut self) {
        let at = Instant::now() + self.network.node.settings.append_timeout;
        self.deadline.as_mut().reset(at);
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<AppendResult, RPCError<Types>>> {
        if let Phase::Opening(body, opening) = &mut self.phase {
            match std::task::ready!(opening.as_mut().poll(cx)) {
                Ok(response) => {
                    let session = Session { body: body.clone(), answers: response.into_inner() };
                    self.phase = Phase::Open(Box::new(session));
                }
                Err(status) => return Poll::Ready(Err(Unreachable::from_string(status).into())),
            }
        }
        let Phase::Open(session) = &mut self.phase else { return Poll::Pending };
        let answer = match std::task::ready!(session.answers.poll_next_unpin(cx)) {
            Some(Ok(record)) => decode::<AppendAnswer>(&record.record)?,
            Some(Err(status)) => return Poll::Ready(Err(Unreachable::from_string(status).into())),
            None => return Poll::Ready(Err(Unreachable::from_string("the peer ended the append stream").into())),
        };
        let Some(bytes) = self.in_flight.pop_front() else {
            return Poll::Ready(Err(NetworkError::from_string("an answer to no append request").into()));
        };
        self.bytes -= bytes;
        self.restart_deadline();
        Poll::Ready(Ok(answer.into()))
    }
}

impl Network {
    fn open(&self) -> Result<Phase, RPCError<Types>> {
        let mut client = self.client(self.traffic).map_err(Unreachable::from_string)?;
        let (body, requests) = mpsc::channel(self.node.settings.append_window);
        let request = self.envelope.request(ReceiverStream::new(requests));
        Ok(Phase::Opening(body, Box::pin(async move { client.append(request).await })))
    }
}

/// The wire form of a request: entries as they are stored, everything else in a record.
pub(crate) fn encode_append(request: &AppendRequest) -> RaftRecord {
    let head = AppendHead {
        vote: (&request.vote).into(),
        previous: position(request.prev_log_id.as_ref()),
        committed: position(request.leader_commit.as_ref()),
    };
    RaftRecord { record: codec::encode(&head).into(), entries: request.entries.iter().map(frame::encode).collect() }
}
