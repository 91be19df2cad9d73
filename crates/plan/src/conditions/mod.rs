//! Every condition that Hangar writes, with every reason it may have.
//!
//! Each controller declares its own in `conditions.rs`, with the macro `conditions!`: what the condition is about, and
//! for each reason its name, its actor, and what it means. There is no other way to make a finding, so the declarations
//! are complete. The reference page, the test of the troubleshooting page and `describe` are made from them.

pub mod reference;
pub(crate) mod shared;
#[cfg(test)]
mod tests;
pub(crate) mod who;

use hangar_api::conditions::{ConditionType, Finding, Origin, Polarity, Reason};

use crate::{
    cluster, hosted_control_plane, kubeadm_bootstrap, machine, machine_deployment, machine_set,
    openstack_cluster, openstack_machine,
};

/// Declares conditions. Each becomes a module with its `TYPE` and its reasons, and all of them the list `ALL`.
///
/// ```text
/// /// Whether etcd has a quorum.
/// etcd_cluster_healthy = "EtcdClusterHealthy", Positive, Own {
///     good ALL_READY = "AllReady": "All members are ready.";
///     bad NO_QUORUM = "NoQuorum" [MANAGEMENT_CLUSTER]: "Fewer than a majority of the etcd members are ready.";
///     ..shared::reads;
/// }
/// ```
macro_rules! conditions {
    ($(
        $(#[doc = $about:literal])+
        $module:ident = $type:literal, $polarity:ident, $origin:ident {
            $($status:ident $reason:ident = $name:literal $([$($who:expr),+])?: $means:literal;)*
            $(..$($shared:ident)::+;)*
        }
    )*) => {
        $(
            $(#[doc = $about])+
            pub(crate) mod $module {
                $crate::conditions::reasons! {
                    $type, $polarity;
                    $($status $reason = $name $([$($who),+])?: $means;)*
                }
            }
        )*

        /// All of them.
        pub(crate) const ALL: &[hangar_api::conditions::ConditionType] = &[$(
            hangar_api::conditions::ConditionType {
                name: $type,
                means: concat!($($about),+),
                polarity: hangar_api::conditions::Polarity::$polarity,
                origin: hangar_api::conditions::Origin::$origin,
                reasons: &[$module::ALL, $($($shared)::+::ALL),*],
            },
        )*];
    };
}

/// The reasons of one condition, or, with an empty type, of several: those are used with `about`.
macro_rules! reasons {
    (
        $type:literal, $polarity:ident;
        $($status:ident $reason:ident = $name:literal $([$($who:expr),+])?: $means:literal;)*
    ) => {
        #[allow(unused_imports, reason = "few conditions need all of them")]
        use {$crate::conditions::who::*, hangar_api::conditions::{Actor, Bad, Good, Reason, Status}};

        /// The type of the condition.
        #[allow(dead_code, reason = "its reasons know it")]
        pub(crate) const TYPE: &str = $type;
        $(
            #[doc = $means]
            #[allow(unreachable_pub, reason = "other crates need some")]
            pub const $reason: $crate::conditions::reasons!(@kind $status) = {
                const WHO: &[Actor] = &[$($($who),+)?];
                <$crate::conditions::reasons!(@kind $status)>::declare(Reason {
                    type_: TYPE,
                    name: $name,
                    status: $crate::conditions::reasons!(@status $status $polarity),
                    who: WHO,
                    means: $means,
                })
            };
        )*

        /// All of them.
        pub(crate) const ALL: &[Reason] = &[$($reason.reason()),*];
    };
    (@kind good) => { Good };
    (@kind bad) => { Bad };
    (@kind unknown) => { Bad };
    (@status good Positive) => { Status::True };
    (@status good Negative) => { Status::False };
    (@status bad Positive) => { Status::False };
    (@status bad Negative) => { Status::True };
    (@status unknown $polarity:ident) => { Status::Unknown };
}

pub(crate) use conditions;
pub(crate) use reasons;

/// The conditions of one kind.
#[derive(Clone, Copy, Debug)]
pub struct KindConditions {
    pub kind: &'static str,
    types: &'static [&'static [ConditionType]],
}

impl KindConditions {
    /// All of them, with those that every kind has.
    pub fn all(&self) -> impl Iterator<Item = &'static ConditionType> {
        self.types.iter().copied().flatten().chain(shared::ALL)
    }
}

/// Every condition of every kind that Hangar's controllers write.
pub fn catalogue() -> Vec<KindConditions> {
    let of = |kind, types| KindConditions { kind, types };
    vec![
        of("Cluster", &[cluster::conditions::ALL]),
        of("HostedControlPlane", &[hosted_control_plane::conditions::ALL]),
        of("MachineDeployment", &[machine_deployment::conditions::ALL, machine_set::conditions::ALL]),
        of("MachineSet", &[machine_set::conditions::ALL]),
        of("Machine", &[machine::conditions::ALL]),
        of("KubeadmConfig", &[kubeadm_bootstrap::conditions::ALL]),
        of("OpenStackCluster", &[openstack_cluster::conditions::ALL]),
        of("OpenStackMachine", &[openstack_machine::conditions::ALL]),
    ]
}

/// Which status of a condition is good, whatever kind has it.
pub(crate) fn polarity(type_: &str) -> Polarity {
    /// Of kinds that nobody here writes.
    const OTHERS: [&str; 2] = ["Remediating", "Updating"];
    let known = catalogue();
    let known = known.iter().flat_map(KindConditions::all).find(|known| known.name == type_);
    match known {
        Some(known) => known.polarity,
        None if OTHERS.contains(&type_) => Polarity::Negative,
        None => Polarity::Positive,
    }
}

/// A declared reason.
pub fn reason(kind: &str, type_: &str, name: &str) -> Option<Reason> {
    condition(kind, type_)?.reason(name)
}

fn condition(kind: &str, type_: &str) -> Option<&'static ConditionType> {
    let known = catalogue().into_iter().find(|known| known.kind == kind)?;
    known.all().find(|condition| condition.name == type_)
}

/// Whether a finding about this kind was declared.
pub(crate) fn is_declared(kind: &str, finding: &Finding) -> bool {
    condition(kind, finding.type_()).is_some_and(|condition| {
        let is_said = |reason: Reason| reason.name == finding.reason() && reason.status == finding.status();
        condition.origin != Origin::Own || condition.declared().any(is_said)
    })
}
