//! Fault rules for tests: which calls go wrong, and with which effect.
//!
//! A rule names calls by method, path and a piece of the body, lets the first few pass and fires a number of times. It
//! counts how often it fired, because a fault that never came proves nothing. A rule for `/compute/*` without a number
//! of times simulates a service that is away.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// Which calls go wrong, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// Finds the rule again.
    pub name: String,
    #[serde(default)]
    pub method: Option<String>,
    /// Path without the query, such as `/compute/v2.1/servers`; `*` stands for anything. Any without.
    #[serde(default)]
    pub path: Option<String>,
    /// What the body must contain.
    #[serde(default)]
    pub body: Option<String>,
    /// How many calls pass before it fires.
    #[serde(default)]
    pub skip: u32,
    /// How often it fires; no limit when empty.
    #[serde(default)]
    pub times: Option<u32>,
    #[serde(rename = "action")]
    pub effect: Effect,
}

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Effect {
    /// It is carried out later. A client that has given up by then does not change that.
    Delay { milliseconds: u64 },
    /// It is carried out, and answered later.
    DelayAfter { milliseconds: u64 },
    /// It is not carried out: 429 with `Retry-After`.
    TooManyRequests {
        /// After how long it may be tried again.
        retry_after_seconds: u64,
    },
    /// It is not carried out: this status, in the shape of the service.
    Fail {
        status: u16,
        message: String,
        /// A `Retry-After` header.
        #[serde(default)]
        retry_after_seconds: Option<u64>,
    },
    /// It is refused as going over the quota.
    OverQuota,
    /// It is refused, because something else changes the subnet at the moment.
    SubnetBusy,
    /// A read shows what there was this long ago, since the rule was set.
    Lag { milliseconds: u64 },
    /// It is carried out, and the connection is cut without an answer.
    CutAfter,
    /// The connection is cut, and nothing is carried out.
    CutBefore,
    /// The server that it creates ends in ERROR with this message.
    FailServer {
        /// The fault's message.
        message: String,
    },
}

/// A rule and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Armed {
    pub rule: FaultRule,
    /// How many calls it met.
    pub met: u32,
    /// How many of them it affected.
    pub fired: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    armed: Vec<Armed>,
}

impl Faults {
    /// Adds a rule, in place of one of the same name.
    pub(crate) fn arm(&mut self, rule: FaultRule) {
        self.armed.retain(|armed| armed.rule.name != rule.name);
        self.armed.push(Armed { rule, met: 0, fired: 0 });
    }

    pub(crate) fn clear(&mut self) {
        self.armed.clear();
    }

    pub(crate) fn all(&self) -> &[Armed] {
        &self.armed
    }

    /// How far back the oldest read looks; `None` where all show what there is.
    pub(crate) fn longest_lag(&self) -> Option<SignedDuration> {
        let lags = self.armed.iter().filter_map(|armed| match armed.rule.effect {
            Effect::Lag { milliseconds } => Some(lag(milliseconds)),
            _ => None,
        });
        lags.max()
    }

    /// What happens to this call.
    pub(crate) fn meet(&mut self, method: &str, path: &str, body: &[u8]) -> Vec<Effect> {
        let mut effects = vec![];
        for armed in &mut self.armed {
            if !armed.rule.is_about(method, path, body) {
                continue;
            }
            armed.met += 1;
            let is_over = armed.rule.times.is_some_and(|times| armed.fired >= times);
            if armed.met > armed.rule.skip && !is_over {
                armed.fired += 1;
                effects.push(armed.rule.effect.clone());
            }
        }
        effects
    }
}

impl FaultRule {
    fn is_about(&self, method: &str, path: &str, body: &[u8]) -> bool {
        let contains = |piece: &String| {
            let piece = piece.as_bytes();
            piece.is_empty() || body.windows(piece.len()).any(|window| window == piece)
        };
        self.method.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(method))
            && self.path.as_ref().is_none_or(|pattern| glob(pattern, path))
            && self.body.as_ref().is_none_or(contains)
    }
}

pub(crate) fn lag(milliseconds: u64) -> SignedDuration {
    SignedDuration::from_millis(i64::try_from(milliseconds).unwrap_or(i64::MAX))
}

fn glob(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    (0..=text.len()).any(|at| text.is_char_boundary(at) && glob(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        assert!(glob("/network/v2.0/ports*", "/network/v2.0/ports/1"));
        assert!(glob("*/servers/*/action", "/compute/v2.1/servers/1/action"));
        assert!(!glob("*/servers", "/compute/v2.1/servers/1"));
        assert!(!glob("/ports", "/port"));
    }

    #[test]
    fn a_rule_skips_fires_and_ends() {
        let mut faults = Faults::default();
        let rule = r#"{"name": "x", "method": "post", "skip": 1, "times": 1, "action": "cut_after"}"#;
        faults.arm(serde_json::from_str(rule).unwrap());
        let fired: Vec<usize> = (0..4).map(|_| faults.meet("POST", "/", b"").len()).collect();
        assert_eq!(fired, [0, 1, 0, 0]);
        assert_eq!((faults.all()[0].met, faults.all()[0].fired), (4, 1));
    }
}
