//! Who belongs to the cluster, and changes of that: one at a time, each decided by etcd's own majority.
//!
//! A change is a proposal. If its outcome is unknown ([`Error::is_lost`]), the list of members tells it; the same change
//! sent again is refused ([`RefusalKind::PeerUrlExists`](super::RefusalKind::PeerUrlExists), or within the same second
//! [`RefusalKind::MemberExists`](super::RefusalKind::MemberExists), because the id is made of the URLs and the time;
//! [`RefusalKind::MemberNotFound`](super::RefusalKind::MemberNotFound)) if it was done.

use super::Member;
use super::wire::{
    Acknowledged, MemberAddRequest, MemberAddResponse, MemberIdRequest, MemberListRequest,
    MemberUpdateRequest, MembersResponse, WireMember,
};
use crate::text::clean;
use crate::{ClusterId, Error, MemberId, Verb};

/// etcd's own advice ends at seven. A longer list is not one of etcd's.
const MOST_MEMBERS: usize = 64;
const MOST_URLS: usize = 32;

/// A member in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterMember {
    pub id: MemberId,
    /// Empty until it has started once: it brings its name itself.
    pub name: String,
    pub peer_urls: Vec<String>,
    /// Empty until it has started once.
    pub client_urls: Vec<String>,
    pub is_learner: bool,
}

impl ClusterMember {
    /// Whether it ever ran as this member.
    pub fn has_started(&self) -> bool {
        !self.name.is_empty()
    }
}

/// The list of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    pub cluster: ClusterId,
    /// Who answered.
    pub told_by: MemberId,
    /// By id.
    pub members: Vec<ClusterMember>,
}

/// What became of an added learner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    pub member: ClusterMember,
    pub membership: Membership,
}

/// Checked here, because etcd does not refuse wrong ones in an update: it gave no answer at all.
fn check_urls(urls: &[String]) -> Result<(), Error> {
    let is_fine = |url: &String| {
        url.parse::<http::Uri>().is_ok_and(|url| {
            let is_http = matches!(url.scheme_str(), Some("https" | "http"));
            is_http && url.port_u16().is_some() && matches!(url.path(), "" | "/") && url.query().is_none()
        })
    };
    if urls.is_empty() || urls.len() > MOST_URLS || !urls.iter().all(is_fine) {
        let why = format!("{urls:?}: each needs the form https://HOST:PORT");
        return Err(Error::unusable("peer URLs", why));
    }
    Ok(())
}

impl Member {
    /// The members, agreed on by a majority: it fails without one.
    pub async fn members(&self) -> Result<Membership, Error> {
        self.list(true).await
    }

    /// The members as this one knows them: also without a majority, and possibly outdated.
    pub async fn members_as_known(&self) -> Result<Membership, Error> {
        self.list(false).await
    }

    async fn list(&self, linearizable: bool) -> Result<Membership, Error> {
        let request = MemberListRequest { linearizable };
        let answer = self.call(Verb::ListMembers, "/etcdserverpb.Cluster/MemberList", request).await?;
        self.membership(Verb::ListMembers, answer)
    }

    /// Adds a member that receives data and does not vote.
    pub async fn add_learner(&self, peer_urls: &[String]) -> Result<Added, Error> {
        const VERB: Verb = Verb::AddLearner;
        check_urls(peer_urls)?;
        let request = MemberAddRequest { peer_urls: peer_urls.to_vec(), is_learner: true };
        let answer: MemberAddResponse = self.call(VERB, "/etcdserverpb.Cluster/MemberAdd", request).await?;
        let added = answer.member.ok_or_else(|| self.malformed(VERB, "it does not say who was added"))?;
        let member = self.cluster_member(VERB, &added)?;
        let members = MembersResponse { header: answer.header, members: answer.members };
        Ok(Added { member, membership: self.membership(VERB, members)? })
    }

    /// Lets a learner vote. Refused while it has not caught up
    /// ([`RefusalKind::LearnerNotReady`](super::RefusalKind::LearnerNotReady)).
    pub async fn promote(&self, learner: MemberId) -> Result<Membership, Error> {
        let request = MemberIdRequest { id: learner.number() };
        let answer = self.call(Verb::Promote, "/etcdserverpb.Cluster/MemberPromote", request).await?;
        self.membership(Verb::Promote, answer)
    }

    /// Removes a member for good: its id never comes back.
    pub async fn remove(&self, member: MemberId) -> Result<Membership, Error> {
        let request = MemberIdRequest { id: member.number() };
        let answer = self.call(Verb::RemoveMember, "/etcdserverpb.Cluster/MemberRemove", request).await?;
        self.membership(Verb::RemoveMember, answer)
    }

    /// Tells the others where a member is now.
    pub async fn update_peers(&self, member: MemberId, peer_urls: &[String]) -> Result<Membership, Error> {
        check_urls(peer_urls)?;
        let request = MemberUpdateRequest { id: member.number(), peer_urls: peer_urls.to_vec() };
        let answer = self.call(Verb::UpdatePeers, "/etcdserverpb.Cluster/MemberUpdate", request).await?;
        self.membership(Verb::UpdatePeers, answer)
    }

    /// Hands leadership to another member. Only the leader does that; it answers when the other leads.
    pub async fn move_leader(&self, to: MemberId) -> Result<(), Error> {
        let request = MemberIdRequest { id: to.number() };
        let _: Acknowledged =
            self.call(Verb::MoveLeader, "/etcdserverpb.Maintenance/MoveLeader", request).await?;
        // etcd sends no header here.
        Ok(())
    }

    fn membership(&self, verb: Verb, answer: MembersResponse) -> Result<Membership, Error> {
        let header = self.header(verb, answer.header)?;
        if answer.members.len() > MOST_MEMBERS {
            return Err(self.malformed(verb, format!("a list of {} members", answer.members.len())));
        }
        let mut members: Vec<_> = answer
            .members
            .iter()
            .map(|member| self.cluster_member(verb, member))
            .collect::<Result<_, _>>()?;
        members.sort_by_key(|member| member.id);
        if members.windows(2).any(|pair| pair[0].id == pair[1].id) {
            return Err(self.malformed(verb, "a list with one member twice"));
        }
        Ok(Membership {
            cluster: ClusterId::new(header.cluster_id),
            told_by: MemberId::new(header.member_id),
            members,
        })
    }

    fn cluster_member(&self, verb: Verb, member: &WireMember) -> Result<ClusterMember, Error> {
        if member.id == 0 {
            return Err(self.malformed(verb, "a member without an id"));
        }
        if member.peer_urls.len() > MOST_URLS || member.client_urls.len() > MOST_URLS {
            return Err(self.malformed(verb, "a member with too many addresses"));
        }
        let texts = |texts: &[String]| texts.iter().map(|text| clean(text)).collect();
        Ok(ClusterMember {
            id: MemberId::new(member.id),
            name: clean(&member.name),
            peer_urls: texts(&member.peer_urls),
            client_urls: texts(&member.client_urls),
            is_learner: member.is_learner,
        })
    }
}
