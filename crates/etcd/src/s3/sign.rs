//! Signature Version 4: proves who sends a request, and that nobody changed it.

use aws_lc_rs::{digest, hmac};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};

use super::StoreConfig;
use crate::id::hex;

/// Everything but RFC 3986's unreserved characters.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The same for paths, which keep their slashes.
const ENCODED_PATH: &AsciiSet = &ENCODED.remove(b'/');

pub(super) fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, ENCODED_PATH).to_string()
}

/// Sorted, as the signature needs it; the same text is sent.
pub(super) fn encode_query(query: &[(&str, &str)]) -> String {
    let encode = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
    let mut pairs: Vec<_> = query.iter().map(|(name, value)| (encode(name), encode(value))).collect();
    pairs.sort();
    let pairs: Vec<_> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

#[derive(Clone)]
pub(super) struct Signer {
    region: String,
    access_key: String,
    secret_key: SecretString,
    session_token: Option<SecretString>,
}

/// What is signed besides headers. All encoded already.
pub(super) struct Signed<'a> {
    pub(super) method: &'a Method,
    pub(super) host: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) body: &'a [u8],
}

impl Signer {
    pub(super) fn new(config: &StoreConfig) -> Self {
        Self {
            region: config.region.clone(),
            access_key: config.access_key.clone(),
            secret_key: config.secret_key.clone(),
            session_token: config.session_token.clone(),
        }
    }

    /// Adds what proves the request to its headers. Those that are there already are signed too. None where a value can
    /// be no header.
    pub(super) fn sign(&self, request: &Signed<'_>, headers: &mut HeaderMap, now: Timestamp) -> Option<()> {
        let now = now.to_zoned(jiff::tz::TimeZone::UTC);
        let (date, time) = (now.strftime("%Y%m%d").to_string(), now.strftime("%Y%m%dT%H%M%SZ").to_string());
        let digest = hex(digest::digest(&digest::SHA256, request.body).as_ref());
        headers.insert(http::header::HOST, HeaderValue::from_str(request.host).ok()?);
        headers.insert(HeaderName::from_static("x-amz-date"), HeaderValue::from_str(&time).ok()?);
        headers.insert(HeaderName::from_static("x-amz-content-sha256"), HeaderValue::from_str(&digest).ok()?);
        if let Some(token) = &self.session_token {
            let mut token = HeaderValue::from_str(token.expose_secret()).ok()?;
            token.set_sensitive(true);
            headers.insert(HeaderName::from_static("x-amz-security-token"), token);
        }
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let names = names.join(";");
        let mut canonical = format!("{}\n{}\n{}\n", request.method, request.path, request.query);
        for name in names.split(';') {
            let value = headers.get(name)?.to_str().ok()?.trim();
            canonical.extend([name, ":", value, "\n"]);
        }
        canonical.extend(["\n", &names, "\n", &digest]);
        let scope = format!("{date}/{}/s3/aws4_request", self.region);
        let canonical = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{canonical}");
        let signature = hex(mac(self.key(&date).as_ref(), &text).as_ref());
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope},SignedHeaders={names},Signature={signature}",
            self.access_key
        );
        let mut authorization = HeaderValue::from_str(&authorization).ok()?;
        authorization.set_sensitive(true);
        headers.insert(http::header::AUTHORIZATION, authorization);
        Some(())
    }

    /// The key of one day, region and service.
    fn key(&self, date: &str) -> hmac::Tag {
        let first = format!("AWS4{}", self.secret_key.expose_secret());
        let mut key = mac(first.as_bytes(), date);
        for part in [self.region.as_str(), "s3", "aws4_request"] {
            key = mac(key.as_ref(), part);
        }
        key
    }
}

fn mac(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of Amazon's documentation, "Signature Calculations for the Authorization Header".
    fn signature(request: &Signed<'_>, mut headers: HeaderMap) -> String {
        let signer = Signer {
            region: "us-east-1".to_owned(),
            access_key: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned().into(),
            session_token: None,
        };
        signer.sign(request, &mut headers, "2013-05-24T00:00:00Z".parse().unwrap()).unwrap();
        let text = headers[http::header::AUTHORIZATION].to_str().unwrap();
        text.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    fn get<'a>(path: &'a str, query: &'a str) -> Signed<'a> {
        Signed { method: &Method::GET, host: "examplebucket.s3.amazonaws.com", path, query, body: b"" }
    }

    #[test]
    fn requests_are_signed_as_amazons_examples_are() {
        let mut range = HeaderMap::new();
        range.insert(http::header::RANGE, HeaderValue::from_static("bytes=0-9"));
        assert_eq!(
            signature(&get("/test.txt", ""), range),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        let query = encode_query(&[("prefix", "J"), ("max-keys", "2")]);
        assert_eq!(
            signature(&get("/", &query), HeaderMap::new()),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
    }

    #[test]
    fn paths_and_queries_are_encoded_as_they_are_signed() {
        assert_eq!(encode_path("/bucket/a b/ü+~"), "/bucket/a%20b/%C3%BC%2B~");
        assert_eq!(encode_query(&[("uploads", ""), ("a", "x/y=z")]), "a=x%2Fy%3Dz&uploads=");
    }
}
