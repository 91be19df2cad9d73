//! Room for the answers of servers that are not trusted: what they may take together, however many answer at once.
//!
//! A limit on the size of each answer is not enough. Many servers can answer at once, and a parser makes much more of an
//! answer than its bytes: `{}` has two, the object that it becomes a thousand. So an answer is weighed while it arrives
//! ([`weight`]), a light one is read freely, and a heavy one needs one of a few places before more of it is kept. The
//! place is given back when the caller has taken the answer; callers parse it at once, each on a thread of the runtime,
//! of which a manager has two.
//!
//! Invariants
//! - A place is for the heaviest answer. None waits for more room while it holds some, so answers cannot block each other.
//! - One server holds one place at a time, and not for longer than [`HOLD`]: one that sends byte by byte has failed.
//! - Who waits for a place longer than [`WAIT`] is told ([`Reason::NoRoom`]). That is not a failure of its server.
//! - A line of a stream is an answer of its own.

use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use http_body::{Body as HttpBody, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Sleep,
};
use tower::BoxError;

/// Heavy answers that are read at once.
const PLACES: usize = 4;
/// What an answer weighs at most: a page of 25 of the largest real Nodes is a third of it.
const HEAVIEST: usize = 32 << 20;
/// What an answer weighs that needs no place: a Node, or a few of our own objects.
const LIGHT: usize = 512 << 10;
/// For a place.
const WAIT: Duration = Duration::from_secs(3);
/// For the rest of an answer that has its place.
const HOLD: Duration = Duration::from_secs(3);

/// What an object takes beside its texts: a struct with many fields, or a node of a map.
const OBJECT: usize = 1000;
/// What an entry of a list or of an object takes.
const ENTRY: usize = 100;

/// Why an answer is not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("no room for the answer within {WAIT:?}: large answers of other tenants take all of it")]
    NoRoom,
    #[error("the answer has so many fields that it would take more than {} MiB", HEAVIEST >> 20)]
    TooHeavy,
    #[error("the answer is large, and not complete after {HOLD:?}")]
    TooSlow,
}

/// What servers may take together, and the turn of one of them. Cloning shares both.
#[derive(Clone, Debug)]
pub struct Room {
    places: Arc<Semaphore>,
    turn: Arc<Semaphore>,
}

/// What an answer holds: its server's turn, and a place.
pub(super) type Place = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Default for Room {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(PLACES)), turn: Arc::new(Semaphore::new(1)) }
    }
}

impl Room {
    /// The same room for another server.
    #[must_use]
    pub fn of_another(&self) -> Self {
        Self { places: Arc::clone(&self.places), turn: Arc::new(Semaphore::new(1)) }
    }

    async fn place(self) -> Result<Place, Reason> {
        let place = async {
            let turn = self.turn.acquire_owned().await.ok()?;
            Some((turn, self.places.acquire_owned().await.ok()?))
        };
        tokio::time::timeout(WAIT, place).await.ok().flatten().ok_or(Reason::NoRoom)
    }
}

/// What text may take once it is parsed: its bytes, and something for each object and each entry that begins. Signs in
/// strings count too, which does no harm.
fn weight(text: &[u8]) -> usize {
    text.iter().fold(0, |sum: usize, byte| {
        sum.saturating_add(match byte {
            b'{' => OBJECT,
            b'[' | b',' => ENTRY,
            _ => 1,
        })
    })
}

/// A body that is weighed while it is read.
pub(super) struct Weighed {
    body: UnsyncBoxBody<Bytes, BoxError>,
    /// None for a server that is trusted.
    room: Option<Room>,
    /// Whether each line is an answer.
    is_stream: bool,
    /// Of what has arrived of the answer.
    weight: usize,
    held: Held,
}

enum Held {
    Nothing,
    /// What arrived, and the wait for a place for it.
    Waiting(Frame<Bytes>, Pin<Box<dyn Future<Output = Result<Place, Reason>> + Send>>),
    Place(Place, Pin<Box<Sleep>>),
}

impl Weighed {
    pub(super) fn new(body: UnsyncBoxBody<Bytes, BoxError>, room: Option<Room>, is_stream: bool) -> Self {
        Self { body, room, is_stream, weight: 0, held: Held::Nothing }
    }

    /// What a complete answer holds.
    pub(super) fn place(self) -> Option<Place> {
        match self.held {
            Held::Place(place, _) => Some(place),
            _ => None,
        }
    }

    /// Whether there is room for more of the answer, or why it is not read on.
    fn weigh(&mut self, data: &[u8]) -> Result<bool, Reason> {
        let whole = self.weight.saturating_add(weight(data));
        if whole > HEAVIEST {
            return Err(Reason::TooHeavy);
        }
        let end = data.iter().rposition(|byte| *byte == b'\n').filter(|_| self.is_stream);
        self.weight = end.map_or(whole, |end| weight(&data[end + 1..]));
        if self.weight <= LIGHT {
            self.held = Held::Nothing;
        }
        Ok(self.weight <= LIGHT || matches!(self.held, Held::Place(..)))
    }
}

impl HttpBody for Weighed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Held::Waiting(_, place) = &mut self.held {
            let place = ready!(place.as_mut().poll(context))?;
            let taken = Held::Place(place, Box::pin(tokio::time::sleep(HOLD)));
            if let Held::Waiting(frame, _) = mem::replace(&mut self.held, taken) {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
        if let Held::Place(_, end) = &mut self.held
            && end.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Some(Err(Reason::TooSlow.into())));
        }
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)?) else {
            return Poll::Ready(None);
        };
        let Some(room) = self.room.clone() else {
            return Poll::Ready(Some(Ok(frame)));
        };
        if self.weigh(frame.data_ref().map_or(&[], AsRef::as_ref))? {
            return Poll::Ready(Some(Ok(frame)));
        }
        self.held = Held::Waiting(frame, Box::pin(room.place()));
        self.poll_frame(context)
    }
}

/// Bytes of an answer, and its place until the last of them is dropped.
struct Taken {
    bytes: Vec<u8>,
    _place: Place,
}

impl AsRef<[u8]> for Taken {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

pub(super) fn taken(bytes: Vec<u8>, place: Option<Place>) -> Bytes {
    match place {
        Some(place) => Bytes::from_owner(Taken { bytes, _place: place }),
        None => bytes.into(),
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt as _, stream};
    use http_body_util::{BodyExt as _, StreamBody};
    use tokio::time::Instant;

    use super::*;

    type Piece = (Duration, Vec<u8>);

    fn body(pieces: Vec<Piece>) -> UnsyncBoxBody<Bytes, BoxError> {
        let frames = stream::iter(pieces).then(|(pause, piece)| async move {
            tokio::time::sleep(pause).await;
            Ok::<_, BoxError>(Frame::data(Bytes::from(piece)))
        });
        StreamBody::new(frames).boxed_unsync()
    }

    /// Reads an answer to its end; says what it then holds.
    async fn read(room: &Room, pieces: Vec<Piece>) -> Result<Option<Place>, Reason> {
        let mut body = Weighed::new(body(pieces), Some(room.clone()), false);
        while let Some(frame) = body.frame().await {
            frame.map_err(|error| *error.downcast::<Reason>().unwrap())?;
        }
        Ok(body.place())
    }

    fn text(length: usize) -> Vec<Piece> {
        vec![(Duration::ZERO, vec![b'x'; length])]
    }

    #[tokio::test(start_paused = true)]
    async fn heavy_answers_take_turns_and_light_ones_wait_for_nobody() {
        let room = Room::default();
        let tenants: Vec<Room> = (0..=PLACES).map(|_| room.of_another()).collect();
        let mut held = Vec::new();
        for tenant in &tenants[..PLACES] {
            held.push(read(tenant, text(LIGHT + 1)).await.unwrap().expect("a place"));
        }
        assert!(read(&tenants[PLACES], text(LIGHT)).await.unwrap().is_none());
        let before = Instant::now();
        assert_eq!(read(&tenants[PLACES], text(LIGHT + 1)).await.unwrap_err(), Reason::NoRoom);
        assert_eq!(before.elapsed(), WAIT);
        drop(held.pop());
        // One tenant has one place, whoever needs the others.
        assert_eq!(read(&tenants[0], text(LIGHT + 1)).await.unwrap_err(), Reason::NoRoom);
        assert!(read(&tenants[PLACES], text(LIGHT + 1)).await.unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn twenty_that_send_byte_by_byte_keep_nobody_out_for_long() {
        let room = Room::default();
        let slow =
            || text(LIGHT + 1).into_iter().chain((0..1000).map(|_| (Duration::from_secs(1), vec![b'x'])));
        let others: Vec<_> = (0..20)
            .map(|_| {
                let (room, slow) = (room.of_another(), slow().collect());
                tokio::spawn(async move { read(&room, slow).await.map(drop) })
            })
            .collect();
        tokio::task::yield_now().await;
        let (own, before) = (room.of_another(), Instant::now());
        while read(&own, text(LIGHT + 1)).await.is_err() {}
        assert!(before.elapsed() <= WAIT * 3, "{:?}", before.elapsed());
        for other in others {
            assert!(matches!(other.await.unwrap(), Err(Reason::TooSlow | Reason::NoRoom)));
        }
    }

    #[tokio::test]
    async fn an_answer_is_as_heavy_as_what_becomes_of_it() {
        let room = Room::default();
        let dense = vec![(Duration::ZERO, b"{},".repeat(HEAVIEST / OBJECT))];
        assert_eq!(read(&room, dense).await.unwrap_err(), Reason::TooHeavy);
        // A page of real Nodes: 20 KiB each, with some hundred objects in them.
        let node = format!("{{{}\"{}\"}}", r#"{"a":["b"]},"#.repeat(300), "x".repeat(16 << 10));
        assert!(read(&room, vec![(Duration::ZERO, node.repeat(25).into())]).await.unwrap().is_some());
        assert!(read(&room, vec![(Duration::ZERO, node.into())]).await.unwrap().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn each_line_of_a_stream_is_weighed_and_one_without_end_is_given_up() {
        let line =
            |end: &str| (Duration::from_secs(1), format!("{}{end}", "x".repeat(LIGHT + 1)).into_bytes());
        let lines = (0..10).map(|_| line("\n")).chain([line("")]);
        let pause = (HOLD * 2, b"x".to_vec());
        let mut body = Weighed::new(body(lines.chain([pause]).collect()), Some(Room::default()), true);
        let mut frames = 0;
        let error = loop {
            match body.frame().await {
                Some(Ok(_)) => frames += 1,
                Some(Err(error)) => break error,
                None => panic!("it ended"),
            }
        };
        assert_eq!((frames, *error.downcast::<Reason>().unwrap()), (11, Reason::TooSlow));
    }
}
