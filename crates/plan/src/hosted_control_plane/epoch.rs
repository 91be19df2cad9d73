//! Epochs: a control plane keeps the way of rendering it was created with, also under a newer Hangar.
//!
//! The epoch is recorded on the HostedControlPlane before anything is created for it. What an epoch renders never
//! changes. A Hangar that renders differently adds an epoch, and a control plane moves to it only with a rollout that
//! its user causes.
//!
//! Tables and renderers take the epoch, or [`super::Validated`], which contains it. A function that is the same for all
//! existing epochs takes the pattern `Epoch::One` as its argument: it no longer compiles when a second epoch is added,
//! so somebody has to decide.

use hangar_api::controlplane::v1alpha1::HostedControlPlane;

use super::names::EPOCH_ANNOTATION;

/// A way of rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Epoch {
    One,
}

/// What is recorded on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    Nothing,
    /// An epoch that this Hangar can render.
    Known(Epoch),
    /// Something else: a newer Hangar was here.
    Strange(String),
}

impl Epoch {
    /// What new control planes get.
    pub const CURRENT: Self = Self::One;

    /// As it is recorded.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::One => "1",
        }
    }

    /// What is recorded on a control plane.
    pub fn recorded(control_plane: &HostedControlPlane) -> Recorded {
        let annotations = control_plane.metadata.annotations.as_ref();
        match annotations.and_then(|annotations| annotations.get(EPOCH_ANNOTATION)) {
            None => Recorded::Nothing,
            Some(text) if text == Self::One.as_str() => Recorded::Known(Self::One),
            Some(text) => Recorded::Strange(text.clone()),
        }
    }
}
