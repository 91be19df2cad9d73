//! Shows an error to users: in one line, or with `-v` the chain of causes.

/// One line: what failed, and the first cause that adds something. With `verbose` every cause, a line each.
pub(crate) fn text(error: &anyhow::Error, verbose: bool) -> String {
    let mut causes: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string().trim().to_owned();
        // Wrappers that show their source's text would say it twice.
        if !text.is_empty() && causes.last().is_none_or(|last| !last.ends_with(&text)) {
            causes.push(text);
        }
    }
    if verbose {
        return causes.join("\n  caused by: ");
    }
    let first = causes.first().map_or("", String::as_str);
    let last = causes.last().map_or("", String::as_str);
    let line =
        if causes.len() > 1 && !first.contains(last) { format!("{first}: {last}") } else { first.to_owned() };
    line.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn a_failure_is_one_line_with_its_root_cause() {
        let error = Err::<(), _>(anyhow!("connection refused"))
            .context("tcp connect error")
            .context("cannot read the CRD clusters.cluster.x-k8s.io")
            .unwrap_err();
        assert_eq!(text(&error, false), "cannot read the CRD clusters.cluster.x-k8s.io: connection refused");
        assert_eq!(
            text(&error, true),
            "cannot read the CRD clusters.cluster.x-k8s.io\n  caused by: tcp connect error\n  caused by: connection refused"
        );
    }

    #[test]
    fn lines_are_joined_without_their_indentation() {
        let error = anyhow!("a step failed: no room\n  log: /somewhere\n  likely fix: make room");
        assert_eq!(text(&error, false), "a step failed: no room; log: /somewhere; likely fix: make room");
    }

    #[test]
    fn a_cause_that_was_said_is_not_said_again() {
        let error = Err::<(), _>(anyhow!("no such file")).context("cannot open: no such file").unwrap_err();
        assert_eq!(text(&error, false), "cannot open: no such file");
        assert_eq!(text(&error, true), "cannot open: no such file");
    }
}
