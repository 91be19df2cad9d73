//! Writes keys, which the client under test cannot.

use bytes::Bytes;
use hangar_etcd::Credentials;
use http::uri::PathAndQuery;
use secrecy::ExposeSecret;
use tonic::client::Grpc;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic_prost::ProstCodec;

#[derive(Clone, PartialEq, prost::Message)]
struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RangeResponse {
    #[prost(int64, tag = "4")]
    count: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct CompactRequest {
    #[prost(int64, tag = "1")]
    revision: i64,
    #[prost(bool, tag = "2")]
    physical: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Nothing {}

#[derive(Clone)]
pub(crate) struct Writer(Channel);

impl Writer {
    pub(crate) fn new(url: &str, credentials: &Credentials) -> Self {
        let tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(&credentials.authorities))
            .identity(Identity::from_pem(&credentials.certificate, credentials.key.expose_secret()));
        Self(Endpoint::from_shared(url.to_owned()).unwrap().tls_config(tls).unwrap().connect_lazy())
    }

    /// Returns when it is acknowledged.
    pub(crate) async fn put(&self, key: &str, value: Bytes) -> Result<(), tonic::Status> {
        let request = PutRequest { key: Bytes::copy_from_slice(key.as_bytes()), value };
        self.call::<_, Nothing>("/etcdserverpb.KV/Put", request).await.map(drop)
    }

    pub(crate) async fn exists(&self, key: &str) -> bool {
        let request = RangeRequest { key: Bytes::copy_from_slice(key.as_bytes()) };
        self.call::<_, RangeResponse>("/etcdserverpb.KV/Range", request).await.unwrap().count == 1
    }

    pub(crate) async fn compact(&self, revision: u64) {
        let request = CompactRequest { revision: i64::try_from(revision).unwrap(), physical: true };
        self.call::<_, Nothing>("/etcdserverpb.KV/Compact", request).await.unwrap();
    }

    /// So many values of a mebibyte, none of which compresses or repeats.
    pub(crate) async fn fill(&self, mebibytes: u32) {
        for number in 0..mebibytes {
            let mut state = number.wrapping_mul(2_654_435_761).wrapping_add(1);
            let value: Bytes = std::iter::repeat_with(|| {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                state.to_le_bytes()
            })
            .take(1 << 18)
            .flatten()
            .collect();
            self.put(&format!("/fill/{number}"), value).await.unwrap();
        }
    }

    async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, tonic::Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.0.clone());
        grpc.ready().await.map_err(|error| tonic::Status::unavailable(error.to_string()))?;
        let path = PathAndQuery::from_static(path);
        let answer = grpc.unary(tonic::Request::new(request), path, ProstCodec::<Q, A>::default()).await?;
        Ok(answer.into_inner())
    }
}
