//! One member of an etcd cluster, at its own address.
//!
//! A [`Member`] is a connection that is made when first used, kept, and made again when it broke. It proves itself with a
//! client certificate and accepts only a server whose certificate is of the cluster's authority and has the expected
//! name, whatever address was dialled. Clones share the connection.
//!
//! The credentials are PEM in memory. When they are renewed, a new `Member` is made: nothing here watches files.

mod maintenance;
mod membership;
mod refusal;
mod status;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use secrecy::{ExposeSecret, SecretString};
use tonic::client::Grpc;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic_prost::ProstCodec;

pub use maintenance::{Freshness, Hash};
pub use membership::{Added, ClusterMember, Membership};
pub use refusal::{Refusal, RefusalKind};
pub use status::{Alarm, AlarmKind, MemberStatus};

use crate::call::Gates;
use crate::{Call, CallGate, Error, Verb};

/// The largest answer that is read. A list of a hundred members has 50 KB.
const LARGEST_ANSWER: usize = 1 << 20;

/// etcd closes connections that are asked for a sign of life more often than every five seconds.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// What proves us to a member and the member to us. All PEM.
#[derive(Clone)]
pub struct Credentials {
    /// The authorities that sign members' certificates.
    pub authorities: String,
    pub certificate: String,
    pub key: SecretString,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credentials")
    }
}

impl Credentials {
    pub fn new(authorities: String, certificate: String, key: String) -> Self {
        Self { authorities, certificate, key: SecretString::from(key) }
    }

    /// A broken PEM would otherwise show itself as a failure to connect.
    fn check(&self) -> Result<(), Error> {
        let count = |what, pem: &str| {
            let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
            match found {
                Ok(found) if !found.is_empty() => Ok(()),
                Ok(_) => Err(Error::unusable(what, "no certificate in it")),
                Err(_) => Err(Error::unusable(what, "it cannot be read as PEM")),
            }
        };
        count("etcd's authorities", &self.authorities)?;
        count("the client certificate for etcd", &self.certificate)?;
        PrivateKeyDer::from_pem_slice(self.key.expose_secret().as_bytes())
            .map(drop)
            .map_err(|_| Error::unusable("the client key for etcd", "it cannot be read as PEM"))
    }
}

/// How long calls may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of making a connection.
    pub connect: Duration,
    /// Of a read, or of a change of the cluster.
    pub call: Duration,
    /// Of a defragmentation, during which a member answers nothing.
    pub defragment: Duration,
    /// Between two pieces of a snapshot.
    pub idle: Duration,
    /// A larger database is not read, in bytes.
    pub largest_snapshot: u64,
}

impl Default for Limits {
    /// etcd gives up a proposal after seven seconds and says so; our limit is longer, so that its answer is heard.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            call: Duration::from_secs(10),
            defragment: Duration::from_mins(10),
            idle: Duration::from_secs(60),
            largest_snapshot: 64 << 30,
        }
    }
}

/// How members are called.
#[derive(Clone, Default)]
pub struct MemberOptions {
    pub limits: Limits,
    /// Which certificate the member must have, where that is not the host of its address.
    pub server_name: Option<String>,
    pub gates: Vec<Arc<dyn CallGate>>,
}

impl fmt::Debug for MemberOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MemberOptions")
            .field("limits", &self.limits)
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

/// A member that can be called.
#[derive(Clone, Debug)]
pub struct Member {
    channel: Channel,
    /// In the names of calls: it stays the same where addresses change.
    name: String,
    limits: Limits,
    gates: Gates,
}

impl Member {
    /// `name` is what errors and gates call it; `url` is its own client address, `https://HOST:PORT`. Nothing is sent yet.
    pub fn new(
        name: impl Into<String>,
        url: &str,
        credentials: &Credentials,
        options: MemberOptions,
    ) -> Result<Self, Error> {
        const ADDRESS: &str = "the address of an etcd member";
        credentials.check()?;
        if !url.starts_with("https://") {
            return Err(Error::unusable(ADDRESS, format!("{url:?} does not begin with https://")));
        }
        let mut tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(&credentials.authorities))
            .identity(Identity::from_pem(&credentials.certificate, credentials.key.expose_secret()))
            .timeout(options.limits.connect);
        if let Some(server_name) = &options.server_name {
            tls = tls.domain_name(server_name.clone());
        }
        let channel = Endpoint::from_shared(url.to_owned())
            .map_err(|error| Error::unusable(ADDRESS, crate::text::causes(&error)))?
            .connect_timeout(options.limits.connect)
            .http2_keep_alive_interval(SIGN_OF_LIFE)
            .keep_alive_timeout(SIGN_OF_LIFE)
            .tls_config(tls)
            .map_err(|error| Error::unusable("the TLS of an etcd member", crate::text::causes(&error)))?
            .connect_lazy();
        Ok(Self { channel, name: name.into(), limits: options.limits, gates: Gates::new(options.gates) })
    }

    /// As errors and gates call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn named(&self, verb: Verb) -> Call {
        Call { verb, about: self.name.clone() }
    }

    fn grpc(&self, largest: usize) -> Grpc<Channel> {
        Grpc::new(self.channel.clone()).max_decoding_message_size(largest)
    }

    /// One request, one answer.
    async fn call<Q, A>(&self, verb: Verb, path: &'static str, request: Q) -> Result<A, Error>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let call = self.named(verb);
        let limit = if verb == Verb::Defragment { self.limits.defragment } else { self.limits.call };
        let work = async {
            let mut grpc = self.grpc(LARGEST_ANSWER);
            let unreached = |error| Error::Unreached { call: call.clone(), why: crate::text::causes(&error) };
            grpc.ready().await.map_err(unreached)?;
            let codec = ProstCodec::<Q, A>::default();
            let path = PathAndQuery::from_static(path);
            match grpc.unary(tonic::Request::new(request), path, codec).await {
                Ok(answer) => Ok(answer.into_inner()),
                Err(status) => Err(refusal::read(&call, &status, limit)),
            }
        };
        self.gates.pass(&call, limit, work).await
    }

    fn malformed(&self, verb: Verb, why: impl Into<String>) -> Error {
        Error::Malformed { call: self.named(verb), why: why.into() }
    }

    /// Every answer of etcd has one; what has none is no etcd.
    fn header(&self, verb: Verb, header: Option<wire::Header>) -> Result<wire::Header, Error> {
        header
            .filter(|header| header.cluster_id != 0 && header.member_id != 0)
            .ok_or_else(|| self.malformed(verb, "it does not say which cluster and member it is of"))
    }

    fn unsigned(&self, verb: Verb, what: &str, number: i64) -> Result<u64, Error> {
        u64::try_from(number).map_err(|_| self.malformed(verb, format!("{what} is negative")))
    }

    /// A key that exists nowhere: reading it costs nothing.
    fn no_key() -> Bytes {
        Bytes::from_static(&[0])
    }
}
