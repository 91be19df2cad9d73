//! Tokens of other issuers (`spec.oidcProviders`): the API server's structured authentication.
//!
//! The API server does not start with a configuration that it cannot read, so everything that can be checked without it
//! is checked here, and every error names its field. What cannot be checked is whether a CEL expression has the right
//! types. A running API server that finds such a file keeps the configuration that it has.
//!
//! The API server reads the file again when it changes. So the file is no part of the hash that replaces pods; only the
//! first provider and the last one do that, because the flag comes or goes.
//!
//! Issuers are called directly from the API server's pod, not through the tunnel: they are chosen by the owner of the
//! HostedControlPlane and not by the tenant, and users have to be able to log in before there is a node.

use std::collections::BTreeSet;

use hangar_api::controlplane::v1alpha1::{HostedControlPlaneSettings, OidcProvider};
use serde_json::{Value, json};

use super::address::{Address, Scheme};
use super::validate::Validated;
use crate::admission::FieldError;

/// The key of the file in the API server's ConfigMap.
pub(super) const KEY: &str = "authentication.yaml";

/// kube-apiserver takes no more.
const MOST_PROVIDERS: usize = 64;
const LONGEST_EXPRESSION: usize = 4096;
/// A ConfigMap has 1 MiB, for all files of the API server.
const LARGEST_FILE: usize = 512 << 10;

/// The issuer of the cluster's own service account tokens.
pub(crate) fn own_issuer(domain: &str) -> String {
    format!("https://kubernetes.default.svc.{domain}")
}

/// The file; nothing where there are no providers. Issuers are in the order of their URLs.
pub(super) fn configuration(validated: &Validated<'_>) -> Option<Value> {
    let providers = &validated.settings.oidc_providers;
    let authenticators: Vec<Value> = providers.iter().map(|(url, given)| authenticator(url, given)).collect();
    (!authenticators.is_empty()).then(|| {
        json!({
            "apiVersion": validated.version.authentication_api(validated.epoch),
            "kind": "AuthenticationConfiguration",
            "jwt": authenticators,
        })
    })
}

fn authenticator(url: &str, given: &OidcProvider) -> Value {
    let mut issuer = json!({"url": url, "audiences": given.audiences});
    if given.audiences.len() > 1 {
        issuer["audienceMatchPolicy"] = json!("MatchAny");
    }
    if let Some(authority) = filled(given.certificate_authority.as_deref()) {
        issuer["certificateAuthority"] = json!(authority);
    }
    let mut mappings = json!({"username": {"expression": given.claim_mappings.username}});
    if let Some(groups) = filled(given.claim_mappings.groups.as_deref()) {
        mappings["groups"] = json!({"expression": groups});
    }
    let rule = |rule: &hangar_api::controlplane::v1alpha1::ClaimValidationRule| {
        let mut written = json!({"expression": rule.expression});
        if let Some(message) = filled(rule.message.as_deref()) {
            written["message"] = json!(message);
        }
        written
    };
    let rules: Vec<Value> = given.claim_validation_rules.iter().map(rule).collect();
    let mut authenticator = json!({"issuer": issuer, "claimMappings": mappings});
    if !rules.is_empty() {
        authenticator["claimValidationRules"] = json!(rules);
    }
    authenticator
}

fn filled(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}

/// What is wrong with the providers. The cluster's own issuer is refused where its domain is known.
pub(crate) fn errors(settings: &HostedControlPlaneSettings, domain: Option<&str>) -> Vec<FieldError> {
    const PATH: &str = "spec.oidcProviders";
    let own = domain.map(own_issuer);
    let mut errors = Vec::new();
    if settings.oidc_providers.len() > MOST_PROVIDERS {
        let (number, why) = (settings.oidc_providers.len(), format!("at most {MOST_PROVIDERS} providers"));
        errors.push(FieldError::invalid(PATH, number, why));
    }
    for (url, given) in &settings.oidc_providers {
        let path = format!("{PATH}[{url}]");
        let issuer = Address::parse(url).and_then(|address| match address {
            Address { scheme: Scheme::Http, .. } => Err("it must be an https URL"),
            Address { has_query: true, .. } => Err("a URL of an issuer has no query"),
            _ => Ok(()),
        });
        if let Err(why) = issuer {
            errors.push(FieldError::invalid(&path, url.as_str(), why));
        }
        if own.as_ref().is_some_and(|own| own == url) {
            let why = "it is the issuer of the cluster's own service account tokens";
            errors.push(FieldError::forbidden(&path, why));
        }
        errors.extend(provider_errors(&path, given));
    }
    let written: usize = settings.oidc_providers.iter().map(|(url, given)| size(url, given)).sum();
    if written > LARGEST_FILE {
        let why = format!("together the providers have at most {} KiB", LARGEST_FILE >> 10);
        errors.push(FieldError::invalid(PATH, written, why));
    }
    errors
}

fn size(url: &str, given: &OidcProvider) -> usize {
    authenticator(url, given).to_string().len()
}

fn provider_errors(path: &str, given: &OidcProvider) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(authority) = filled(given.certificate_authority.as_deref())
        && let Err(why) = certificates(authority)
    {
        errors.push(FieldError::invalid(format!("{path}.certificateAuthority"), "(PEM)", why));
    }
    if given.audiences.is_empty() {
        let why = "a token must be issued for one of them";
        errors.push(FieldError::required(format!("{path}.audiences"), why));
    }
    let mut seen = BTreeSet::new();
    for (index, audience) in given.audiences.iter().enumerate() {
        if audience.is_empty() || !seen.insert(audience) {
            let why = "audiences are not empty, and each is there once";
            errors.push(FieldError::invalid(format!("{path}.audiences[{index}]"), audience.as_str(), why));
        }
    }
    let mappings = &given.claim_mappings;
    let username = (format!("{path}.claimMappings.username"), Some(mappings.username.as_str()));
    let groups = (format!("{path}.claimMappings.groups"), filled(mappings.groups.as_deref()));
    let rules = given.claim_validation_rules.iter().enumerate();
    let rules = rules.map(|(index, rule)| {
        (format!("{path}.claimValidationRules[{index}].expression"), Some(rule.expression.as_str()))
    });
    let mut rules_seen = BTreeSet::new();
    let all = [username.clone(), groups].into_iter().chain(rules.clone());
    for (field, expression) in all.filter_map(|(field, text)| Some((field, text?))) {
        if let Err(why) = expression_error(expression) {
            errors.push(FieldError::invalid(field, expression, why));
        }
    }
    for (field, expression) in rules.filter_map(|(field, text)| Some((field, text?))) {
        if !rules_seen.insert(expression) {
            errors.push(FieldError::invalid(field, expression, "the same expression is there already"));
        }
    }
    if uses_claim(&mappings.username, "email")
        && !uses_claim(&mappings.username, "email_verified")
        && !rules_seen.iter().any(|rule| uses_claim(rule, "email_verified"))
    {
        let why = "the API server accepts claims.email only where claims.email_verified is checked, here or in \
                   claimValidationRules: claims.?email_verified.orValue(true) == true";
        errors.push(FieldError::invalid(username.0, mappings.username.as_str(), why));
    }
    errors
}

/// Certificates and nothing else: a key in this place would be in a ConfigMap.
pub(super) fn certificates(pem: &str) -> Result<(), &'static str> {
    const BEGIN: &str = "-----BEGIN ";
    const CERTIFICATE: &str = "CERTIFICATE-----";
    let mut sections = pem.split(BEGIN).skip(1).peekable();
    if sections.peek().is_none() {
        return Err("it has no certificate in PEM");
    }
    for section in sections {
        let Some(rest) = section.strip_prefix(CERTIFICATE) else {
            return Err("it has something else than certificates: only they belong here");
        };
        let Some((body, _)) = rest.split_once("-----END CERTIFICATE-----") else {
            return Err("a certificate has no end");
        };
        let text: String = body.split_whitespace().collect();
        let der = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text);
        let der = der.map_err(|_| "a certificate is no base64")?;
        if !is_sequence(&der) {
            return Err("what is in it is no certificate");
        }
    }
    Ok(())
}

/// Whether these bytes are one sequence in DER, from the first to the last.
fn is_sequence(der: &[u8]) -> bool {
    match der {
        [0x30, short, rest @ ..] if *short < 0x80 => rest.len() == usize::from(*short),
        [0x30, long, rest @ ..] if (0x81..=0x84).contains(long) => {
            let (length, rest) = rest.split_at(usize::from(*long & 0x7f).min(rest.len()));
            let length = length.iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
            rest.len() == length && length > 0
        }
        _ => false,
    }
}

/// What can be told of an expression without a CEL compiler: that it is one, that brackets match and that texts end.
fn expression_error(expression: &str) -> Result<(), String> {
    if expression.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    if expression.len() > LONGEST_EXPRESSION {
        return Err(format!("it has more than {LONGEST_EXPRESSION} bytes"));
    }
    if ranges_over_claim(expression) {
        return Err("a claim has no type of its own, so that it has to be wrapped before .map, .filter, .all or .exists: \
                    dyn(claims.groups).map(...)"
            .to_owned());
    }
    let mut open = Vec::new();
    for letter in without_texts(expression).ok_or("a text in it does not end")?.chars() {
        match letter {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.pop() != Some(letter) => {
                return Err(format!("the bracket {letter} was not opened"));
            }
            ';' | '#' | '$' | '@' | '\\' | '`' => return Err(format!("{letter} is no part of CEL")),
            _ => {}
        }
    }
    open.pop().map_or(Ok(()), |letter| Err(format!("a bracket {letter} is missing")))
}

/// The expression with its texts and comments replaced by spaces; nothing if one of the texts has no end.
fn without_texts(expression: &str) -> Option<String> {
    let mut rest = expression;
    let mut kept = String::with_capacity(expression.len());
    while let Some(start) = rest.find(['"', '\'', '/']) {
        let (before, from) = rest.split_at(start);
        kept.push_str(before);
        kept.push(' ');
        if let Some(after) = from.strip_prefix('/') {
            let is_comment = after.starts_with('/');
            rest = if is_comment { after.split_once('\n').map_or("", |(_, rest)| rest) } else { after };
            continue;
        }
        let is_raw = before.ends_with(['r', 'R']);
        let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| from.starts_with(quote))?;
        let mut body = from.get(quote.len()..)?;
        loop {
            let at = body.find([quote.chars().next()?, '\\'])?;
            if body[at..].starts_with('\\') && !is_raw {
                let after = body[at + 1..].chars().next()?;
                body = &body[at + 1 + after.len_utf8()..];
            } else if body[at..].starts_with(quote) {
                rest = &body[at + quote.len()..];
                break;
            } else {
                body = &body[at + 1..];
            }
        }
    }
    kept.push_str(rest);
    Some(kept)
}

/// Whether an expression goes over the entries of a claim, which kube-apiserver compiles only where it is wrapped in
/// `dyn`. It is the mistake that is made most often, and an API server does not start with it.
fn ranges_over_claim(expression: &str) -> bool {
    let text: String = without_texts(expression).unwrap_or_default().split_whitespace().collect();
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    [".map(", ".filter(", ".all(", ".exists(", ".exists_one("].iter().any(|with| {
        text.match_indices(with).any(|(at, _)| {
            let before = &text[..at];
            let base =
                before.strip_suffix("[]").or_else(|| before.trim_end_matches(is_part).strip_suffix('.'));
            base.and_then(|base| base.strip_suffix("claims"))
                .is_some_and(|rest| !rest.ends_with(|letter| is_part(letter) || letter == '.'))
        })
    })
}

/// Whether an expression selects a claim by its name.
fn uses_claim(expression: &str, claim: &str) -> bool {
    let text: String = without_texts(expression).unwrap_or_default().split_whitespace().collect();
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    ["claims.", "claims.?"].iter().any(|before| {
        text.match_indices(&format!("{before}{claim}"))
            .any(|(at, found)| !text[at + found.len()..].starts_with(is_part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_one_as_far_as_can_be_told() {
        for good in [
            "claims.sub",
            "'https://issuer#' + claims.sub",
            "dyn(claims.groups).map(g, \"team:\" + g)",
            "claims.realm.roles.map(r, r)",
            "[claims.a].all(x, x == 'b')",
            r#"claims.a == 'it\'s (' && dyn(claims.b).exists(x, x in ["]"])"#,
            "claims.?email.orValue('') // the (mail",
            r"claims.sub.matches(r'^\d+$')",
            "claims.a / 2 > 1",
            "'''a ' b''' + claims.sub",
        ] {
            assert_eq!(expression_error(good), Ok(()), "{good}");
        }
        for bad in
            ["", "  ", "claims.sub)", "f(claims.sub", "'open", "claims.sub; true", "[claims.a)", "\"a\\"]
        {
            assert!(expression_error(bad).is_err(), "{bad}");
        }
        assert!(expression_error(&"a".repeat(5000)).is_err());
        for bad in ["claims.groups.map(g, g)", "claims['groups'] .filter(g, true)", "!claims.a.exists(x, x)"]
        {
            assert!(expression_error(bad).is_err_and(|why| why.contains("dyn(")), "{bad}");
        }
    }

    #[test]
    fn the_claim_of_a_mail_address_is_found() {
        assert!(uses_claim("claims.email", "email"));
        assert!(uses_claim("claims . ?email.orValue('x')", "email"));
        assert!(!uses_claim("claims.email_verified", "email"));
        assert!(!uses_claim("'claims.email' + claims.sub", "email"));
    }
}
