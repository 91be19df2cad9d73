//! Writes refusals as each service does. They differ, and clients read them.

use serde_json::json;

use super::reply::Reply;
use super::request::Request;
use crate::model::Refusal;

/// Of a refusal that no controller speaks but the web framework: nobody answers at this path. A client must not take it
/// for an object that does not exist.
pub(crate) const NO_SUCH_PATH: &str = "NoSuchPath";

/// Keystone, and the middleware of all others where a token is missing.
pub(crate) fn identity(refusal: &Refusal) -> Reply {
    let title = title(refusal.status);
    Reply::json(
        refusal.status,
        &json!({"error": {"code": refusal.status, "message": refusal.message, "title": title}}),
    )
}

/// Nova names the status.
pub(crate) fn compute(refusal: &Refusal) -> Reply {
    if refusal.kind == NO_SUCH_PATH {
        return framework(refusal);
    }
    let name = match refusal.status {
        400 => "badRequest",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "itemNotFound",
        405 => "badMethod",
        409 => "conflictingRequest",
        413 | 429 => "overLimit",
        415 => "badMediaType",
        501 => "notImplemented",
        503 => "serviceUnavailable",
        _ => "computeFault",
    };
    Reply::json(refusal.status, &json!({name: {"code": refusal.status, "message": refusal.message}}))
}

/// Neutron names the exception.
pub(crate) fn network(refusal: &Refusal) -> Reply {
    if refusal.kind == NO_SUCH_PATH {
        return framework(refusal);
    }
    Reply::json(
        refusal.status,
        &json!({"NeutronError": {"type": refusal.kind, "message": refusal.message, "detail": ""}}),
    )
}

/// Glance writes a page, or JSON where only that is accepted.
pub(crate) fn image(refusal: &Refusal, request: &Request) -> Reply {
    let Refusal { status, message, .. } = refusal;
    let title = title(*status);
    let accept = request.header("accept").unwrap_or("*/*");
    if accept.contains("html") || accept.contains("*/*") {
        let page = format!(
            "<html>\n <head>\n  <title>{status} {title}</title>\n </head>\n <body>\n  <h1>{status} {title}</h1>\n  {}<br /><br />\n\n\n\n </body>\n</html>",
            escape(message)
        );
        return Reply::text(*status, "text/html; charset=UTF-8", page);
    }
    if accept.contains("json") {
        return framework(refusal);
    }
    Reply::text(*status, "text/plain; charset=UTF-8", format!("{status} {title}\n\n{message}\n\n   "))
}

/// The web framework of all services, to clients that take JSON.
fn framework(refusal: &Refusal) -> Reply {
    let (status, title) = (refusal.status, title(refusal.status));
    let message = format!("{}<br /><br />\n\n\n", escape(&refusal.message));
    Reply::json(status, &json!({"message": message, "code": format!("{status} {title}"), "title": title}))
}

/// No service of OpenStack.
pub(crate) fn plain(refusal: &Refusal) -> Reply {
    Reply::json(refusal.status, &json!({"message": refusal.message}))
}

fn title(status: u16) -> &'static str {
    http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Error")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
