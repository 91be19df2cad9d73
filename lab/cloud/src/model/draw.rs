//! The inputs of the model: the time and fresh ids. They are passed in, so that the model stays pure.

use jiff::Timestamp;
use uuid::Uuid;

/// Time and fresh ids for one call.
pub struct Draw {
    /// When the call happens.
    pub now: Timestamp,
    /// When it arrived. Neutron looks for what stands in the way of a call first and writes later: what another call made
    /// in between does not count.
    pub arrived: Timestamp,
    next: Box<dyn FnMut() -> Uuid + Send>,
}

impl Draw {
    /// With random ids.
    pub fn random(now: Timestamp) -> Self {
        Self { now, arrived: now, next: Box::new(Uuid::new_v4) }
    }

    /// With ids that count up, for tests.
    pub fn counting(now: Timestamp) -> Self {
        let mut count = 0_u128;
        let next = move || {
            count += 1;
            Uuid::from_u128(count)
        };
        Self { now, arrived: now, next: Box::new(next) }
    }

    /// A fresh id.
    pub fn id(&mut self) -> Uuid {
        (self.next)()
    }

    /// A fresh hardware address, in the range that OpenStack uses.
    pub fn mac(&mut self) -> [u8; 6] {
        let id = *self.id().as_bytes();
        [0xfa, 0x16, 0x3e, id[13], id[14], id[15]]
    }

    /// A fresh secret that cannot be guessed: 244 random bits.
    pub fn secret(&mut self) -> String {
        format!("{}{}", self.id().simple(), self.id().simple())
    }
}
