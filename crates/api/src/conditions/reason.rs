//! Reasons, declared once beside their condition. A finding can be made with a declared reason only.
//!
//! Status and actor follow from the reason, so a controller gives only the reason and what is waited for. Documentation
//! and tools are made from the declarations.

use super::{Actor, Finding, Polarity, Status, Waiting};

/// A reason that a condition may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Type of the condition; empty for a reason that several conditions share.
    pub type_: &'static str,
    /// The reason, for programs.
    pub name: &'static str,
    /// Status of a condition with this reason.
    pub status: Status,
    /// Who may have to act, the usual one first; empty where no action is needed.
    pub who: &'static [Actor],
    /// What it means, in one sentence.
    pub means: &'static str,
}

/// A reason of a condition that is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Good(Reason);

/// A reason of a condition with a bad or unknown status: an actor must act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bad(Reason);

/// What both kinds of reasons have.
macro_rules! declared {
    ($($reason:ident),*) => {
        $(impl $reason {
            /// Declares a reason.
            pub const fn declare(reason: Reason) -> Self {
                Self(reason)
            }

            /// What was declared.
            pub const fn reason(self) -> Reason {
                self.0
            }

            /// The same of another condition.
            #[must_use]
            pub const fn about(self, type_: &'static str) -> Self {
                Self(Reason { type_, ..self.0 })
            }

            fn finding(self, text: String, waiting: Option<Waiting>, is_good: bool) -> Finding {
                let Reason { type_, name, status, .. } = self.0;
                Finding { waiting, is_good, ..Finding::made(type_, status, name, text) }
            }
        })*
    };
}

declared!(Good, Bad);

impl Good {
    /// The finding, with a remark.
    pub fn remark(self, text: impl Into<String>) -> Finding {
        self.finding(text.into(), None, true)
    }
}

impl From<Good> for Finding {
    fn from(good: Good) -> Self {
        good.remark("")
    }
}

impl Bad {
    /// The finding while this is waited for; the usual one must act.
    pub fn waits(self, on: impl Into<String>) -> Finding {
        self.by(self.0.who.first().cloned().unwrap_or(Actor::Hangar), on)
    }

    /// The finding while this is waited for, and this one must act.
    pub fn by(self, actor: Actor, on: impl Into<String>) -> Finding {
        self.waiting(Waiting::new(actor, on))
    }

    /// The finding while this is waited for.
    pub fn waiting(self, waiting: Waiting) -> Finding {
        self.finding(String::new(), Some(waiting), false)
    }
}

/// Where the reasons of a condition come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Declared here.
    Own,
    /// Made from other conditions: besides what is declared `Ready`, `NotReady` and `ReadyUnknown`.
    Merged,
    /// Taken over from another condition: besides what is declared any.
    Mirrored,
}

/// A type of condition of a kind, with its reasons.
#[derive(Clone, Copy, Debug)]
pub struct ConditionType {
    /// The type.
    pub name: &'static str,
    /// What it is about.
    pub means: &'static str,
    /// Which status is good.
    pub polarity: Polarity,
    /// Where reasons come from.
    pub origin: Origin,
    /// What is declared: its own, and those that it shares.
    pub reasons: &'static [&'static [Reason]],
}

impl ConditionType {
    /// The reasons that are declared.
    pub fn declared(&self) -> impl Iterator<Item = Reason> {
        let type_ = self.name;
        self.reasons.iter().flat_map(|group| group.iter()).map(move |reason| Reason { type_, ..*reason })
    }

    /// A declared reason by its name.
    pub fn reason(&self, name: &str) -> Option<Reason> {
        self.declared().find(|reason| reason.name == name)
    }
}
