use http::StatusCode;

use super::answer::{ErrorAnswer, ListAnswer, UploadsAnswer, read};
use super::*;
use crate::{Call, Verb};

fn config() -> StoreConfig {
    StoreConfig {
        endpoint: "https://s3.example.org".to_owned(),
        region: "us-east-1".to_owned(),
        bucket: "backups".to_owned(),
        prefix: String::new(),
        access_key: "access".to_owned(),
        secret_key: "very-secret".to_owned().into(),
        session_token: None,
        authorities: None,
        addressing: Addressing::Path,
        limits: StoreLimits::default(),
        addresses: None,
        gates: Vec::new(),
    }
}

fn call() -> Call {
    Call { verb: Verb::ListObjects, about: "demo/".to_owned() }
}

#[test]
fn a_bucket_is_addressed_by_path_or_by_host() {
    let bucket = Bucket::new(&config()).unwrap();
    assert_eq!((bucket.host.as_str(), bucket.root.as_str()), ("s3.example.org", "/backups/"));
    let of = |endpoint: &str, addressing| {
        let config = StoreConfig { endpoint: endpoint.to_owned(), addressing, ..config() };
        let bucket = Bucket::new(&config).unwrap();
        format!("{}{}", bucket.origin, bucket.root)
    };
    assert_eq!(of("https://s3.example.org:443/", Addressing::VirtualHost), "https://backups.s3.example.org/");
    assert_eq!(of("http://127.0.0.1:7070", Addressing::Path), "http://127.0.0.1:7070/backups/");
}

#[test]
fn what_cannot_be_used_is_said_before_anything_is_sent() {
    let wrong = [
        StoreConfig { endpoint: "s3.example.org".to_owned(), ..config() },
        StoreConfig { endpoint: "ftp://s3.example.org".to_owned(), ..config() },
        StoreConfig { endpoint: "https://user@s3.example.org".to_owned(), ..config() },
        StoreConfig { endpoint: "https://s3.example.org/backups".to_owned(), ..config() },
        StoreConfig { bucket: "back/ups".to_owned(), ..config() },
        StoreConfig { region: String::new(), ..config() },
        StoreConfig { access_key: "a/b".to_owned(), ..config() },
        StoreConfig { authorities: Some("nothing".to_owned()), ..config() },
    ];
    for config in wrong {
        let error = Bucket::new(&config).unwrap_err();
        assert!(error.is_user_fault(), "{config:?}: {error}");
    }
}

#[test]
fn secrets_are_in_no_debug_text() {
    let text = format!("{:?} {:?}", config(), Bucket::new(&config()).unwrap());
    assert!(!text.contains("very-secret"), "{text}");
}

#[test]
fn a_list_is_read_with_what_servers_leave_out() {
    let body = "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
        <Name>backups</Name><IsTruncated>true</IsTruncated><NextContinuationToken>t/1=</NextContinuationToken>\
        <Contents><Key>a&amp;b</Key><LastModified>2026-11-18T19:45:00.000Z</LastModified><Size>7</Size>\
        <ETag>&quot;x&quot;</ETag></Contents></ListBucketResult>";
    let list: ListAnswer = read(&call(), body.as_bytes()).unwrap();
    assert!(list.is_truncated);
    assert_eq!(list.contents[0].key, "a&b");
    assert_eq!(list.next_continuation_token.as_deref(), Some("t/1="));
    let empty: ListAnswer = read(&call(), b"<ListBucketResult><Name>b</Name></ListBucketResult>").unwrap();
    assert!(empty.contents.is_empty() && !empty.is_truncated);
    let uploads: UploadsAnswer = read(
        &call(),
        b"<ListMultipartUploadsResult><Upload><Key>k</Key><UploadId>u</UploadId>\
        </Upload><Upload><Key>l</Key><UploadId>v</UploadId></Upload></ListMultipartUploadsResult>",
    )
    .unwrap();
    assert_eq!(uploads.uploads.len(), 2);
}

#[test]
fn what_is_no_answer_of_s3_is_an_error_and_no_panic() {
    for body in [&b"\xff\xfe"[..], b"<a>", b"", b"<html><body>login</body></html>", b"{}"] {
        assert!(read::<super::answer::BegunAnswer>(&call(), body).is_err(), "{body:?}");
        assert!(ErrorAnswer::read(body).is_none(), "{body:?}");
    }
}

#[test]
fn a_refusal_is_known_by_its_code_or_its_status() {
    let kind = |status: u16, code: &str| {
        let body = format!("<Error><Code>{code}</Code><Message>no\nway</Message></Error>");
        StoreRefusal::read(&call(), StatusCode::from_u16(status).unwrap(), body.as_bytes()).kind
    };
    assert_eq!(kind(404, "NoSuchBucket"), StoreRefusalKind::NoSuchBucket);
    assert_eq!(kind(403, "SignatureDoesNotMatch"), StoreRefusalKind::WrongCredentials);
    assert_eq!(kind(403, "Unheard"), StoreRefusalKind::Denied);
    assert_eq!(kind(200, "InternalError"), StoreRefusalKind::Internal, "a completion that failed late");
    assert_eq!(kind(503, "SlowDown"), StoreRefusalKind::Overloaded);
    let bare = StoreRefusal::read(&call(), StatusCode::BAD_GATEWAY, b"<html>");
    assert_eq!((bare.kind, bare.text.as_str()), (StoreRefusalKind::Internal, "502 Bad Gateway"));
}
