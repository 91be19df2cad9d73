//! `systemctl` inside a machine: the commands that installers and cloud-init scripts use, sent to our supervisor.
//!
//! Machines have no systemd, but kubeadm stops, starts and queries `kubelet.service`, and users' scripts restart
//! `containerd`. Units are the supervisor's services; all of them count as enabled. Exit codes and texts are those of
//! systemctl where kubeadm or scripts read them. Nothing is kept over a restart of the machine.
//!
//! As with systemctl, `stop` and `restart` return when they are done (a stopped service holds no port and no mount),
//! unless `--no-block` is given; a service that had to be killed counts as stopped, with a message.

use std::{
    ffi::OsString,
    fmt::Write as _,
    io::{self, Write},
    process::ExitCode,
};

use super::control::{Request, Response, ask_here};
use crate::{
    error::Result,
    name::Name,
    service::{Ending, ServiceState, ServiceStatus},
};

/// "Not active", as init scripts have it.
const NOT_ACTIVE: u8 = 3;
/// "No such unit" of the verbs that look.
const UNKNOWN: u8 = 4;
/// "No such unit" of the verbs that act.
const NOT_FOUND: u8 = 5;

/// Verbs with nothing to do here: units are not files, and nothing is remembered.
const NOTHING: [&str; 7] =
    ["daemon-reload", "daemon-reexec", "mask", "unmask", "preset", "reset-failed", "disable"];

/// What was said.
#[derive(Default)]
struct Answer {
    text: String,
    complaint: String,
    code: u8,
}

impl Answer {
    fn said(text: impl Into<String>, code: u8) -> Self {
        Self { text: text.into(), code, ..Self::default() }
    }

    fn failed(complaint: String, code: u8) -> Self {
        Self { complaint, code, ..Self::default() }
    }
}

/// Runs one command line.
pub(super) fn run(arguments: &[OsString]) -> ExitCode {
    let words: Vec<String> =
        arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let answer = respond(&words, &mut ask_here);
    // Nobody listening is no failure of the command.
    let _ = io::stdout().write_all(answer.text.as_bytes());
    let _ = io::stderr().write_all(answer.complaint.as_bytes());
    ExitCode::from(answer.code)
}

type Ask<'a> = &'a mut dyn FnMut(&Request) -> Result<Response>;

fn respond(words: &[String], ask: Ask<'_>) -> Answer {
    let (options, rest): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| word.starts_with('-'));
    let has = |name: &str| options.iter().any(|option| *option == name);
    let Some((verb, units)) = rest.split_first() else {
        return Answer::failed("a verb is missing\n".to_owned(), 1);
    };
    let units: Vec<&str> = units.iter().map(|unit| unit.strip_suffix(".service").unwrap_or(unit)).collect();
    let services = match ask(&Request::Status) {
        Ok(answer) => answer.services,
        Err(error) => return Answer::failed(format!("{error}\n"), 1),
    };
    let quiet = has("-q") || has("--quiet");
    let at_once = has("--no-block");
    match verb.as_str() {
        "is-active" | "is-failed" => states(&services, &units, quiet),
        "is-enabled" => enabled(&services, &units, quiet),
        "status" => status(&services, &units),
        "is-system-running" => Answer::said("running\n", 0),
        "enable" if !has("--now") => known(&services, &units, "enable"),
        "enable" | "start" => act(&services, &units, "start", at_once, ask),
        "stop" => act(&services, &units, "stop", at_once, ask),
        "disable" | "mask" if has("--now") => act(&services, &units, "stop", at_once, ask),
        "restart" | "reload-or-restart" => act(&services, &units, "restart", at_once, ask),
        "try-restart" | "condrestart" | "try-reload-or-restart" | "force-reload" => {
            let runs =
                |unit: &&str| word(find(&services, unit)) == "active" || find(&services, unit).is_none();
            let units: Vec<&str> = units.into_iter().filter(runs).collect();
            act(&services, &units, "restart", at_once, ask)
        }
        verb if NOTHING.contains(&verb) => Answer::default(),
        verb => Answer::failed(format!("{verb}: there is no systemd in this machine\n"), 1),
    }
}

fn find<'a>(services: &'a [ServiceStatus], unit: &str) -> Option<&'a ServiceStatus> {
    services.iter().find(|service| service.name.as_str() == unit)
}

fn known(services: &[ServiceStatus], units: &[&str], verb: &str) -> Answer {
    match units.iter().find(|unit| find(services, unit).is_none()) {
        Some(unit) => not_found(unit, verb),
        None => Answer::default(),
    }
}

fn not_found(unit: &str, verb: &str) -> Answer {
    let complaint = format!("Failed to {verb} {unit}.service: Unit {unit}.service not found.\n");
    Answer::failed(complaint, NOT_FOUND)
}

fn act(services: &[ServiceStatus], units: &[&str], verb: &str, at_once: bool, ask: Ask<'_>) -> Answer {
    let mut answer = Answer::default();
    for unit in units {
        if find(services, unit).is_none() {
            return not_found(unit, verb);
        }
        let request = Name::new(*unit).map(|service| match verb {
            "start" => Request::StartService { service, at_once },
            "stop" => Request::StopService { service, at_once },
            _ => Request::RestartService { service, at_once },
        });
        match request.and_then(|request| ask(&request)) {
            Ok(response) if response.ending() == Ending::Killed => {
                let _ = writeln!(answer.complaint, "{unit}.service did not end in time and was killed.");
            }
            Ok(_) => {}
            Err(error) => {
                let _ = writeln!(answer.complaint, "Failed to {verb} {unit}.service: {error}");
                answer.code = 1;
                return answer;
            }
        }
    }
    answer
}

fn word(service: Option<&ServiceStatus>) -> &'static str {
    match service.map(|service| &service.state) {
        Some(ServiceState::Running(_)) => "active",
        Some(ServiceState::Stopping) => "deactivating",
        // It was told to run and waits for its files, as a unit that restarts until it is configured.
        Some(ServiceState::Waiting | ServiceState::Restarting) => "activating",
        Some(ServiceState::Ended(code)) if *code != 0 => "failed",
        Some(ServiceState::Ended(_) | ServiceState::Stopped) | None => "inactive",
    }
}

fn states(services: &[ServiceStatus], units: &[&str], quiet: bool) -> Answer {
    let words: Vec<&str> = units.iter().map(|unit| word(find(services, unit))).collect();
    let text = if quiet { String::new() } else { words.join("\n") + "\n" };
    Answer::said(text, if words.contains(&"active") { 0 } else { NOT_ACTIVE })
}

fn enabled(services: &[ServiceStatus], units: &[&str], quiet: bool) -> Answer {
    match units.iter().find(|unit| find(services, unit).is_none()) {
        Some(unit) => {
            let why = "No such file or directory";
            Answer::failed(format!("Failed to get unit file state for {unit}.service: {why}\n"), 1)
        }
        None if quiet => Answer::default(),
        None => Answer::said(units.iter().map(|_| "enabled\n").collect::<String>(), 0),
    }
}

fn status(services: &[ServiceStatus], units: &[&str]) -> Answer {
    let mut answer = Answer::default();
    for unit in units {
        let Some(service) = find(services, unit) else {
            let _ = writeln!(answer.text, "Unit {unit}.service could not be found.");
            answer.code = UNKNOWN;
            continue;
        };
        let word = word(Some(service));
        let _ = writeln!(
            answer.text,
            "{unit}.service\n     Loaded: loaded (supervisor; enabled)\n     Active: {word}"
        );
        if word != "active" {
            answer.code = NOT_ACTIVE;
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str, state: ServiceState) -> ServiceStatus {
        ServiceStatus { name: Name::new(name).unwrap(), state, starts: 1, last_exit: None }
    }

    fn say(line: &str) -> (String, u8, Vec<String>) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut asked = Vec::new();
        let answer = respond(&words, &mut |request| {
            asked.push(serde_json::to_string(request).unwrap());
            let services = vec![
                service("containerd", ServiceState::Running(7)),
                service("kubelet", ServiceState::Waiting),
                service("cloud-init", ServiceState::Ended(1)),
                service("leaving", ServiceState::Stopping),
            ];
            let was_killed =
                matches!(request, Request::StopService { service, .. } if service.as_str() == "leaving");
            Ok(Response { was_killed, ..Response::done(services) })
        });
        assert!(answer.text.is_empty() || answer.complaint.is_empty());
        (answer.text + &answer.complaint, answer.code, asked.into_iter().skip(1).collect())
    }

    #[test]
    fn acts_on_services() {
        for (line, request) in [
            ("start kubelet", r#"{"verb":"start-service","service":"kubelet"}"#),
            ("enable --now kubelet.service", r#"{"verb":"start-service","service":"kubelet"}"#),
            ("stop kubelet", r#"{"verb":"stop-service","service":"kubelet"}"#),
            ("disable --now kubelet", r#"{"verb":"stop-service","service":"kubelet"}"#),
            ("restart containerd", r#"{"verb":"restart-service","service":"containerd"}"#),
            ("try-restart containerd", r#"{"verb":"restart-service","service":"containerd"}"#),
            (
                "--no-block restart containerd",
                r#"{"verb":"restart-service","service":"containerd","at_once":true}"#,
            ),
        ] {
            assert_eq!(say(line), (String::new(), 0, vec![request.to_owned()]), "{line}");
        }
        for line in
            ["daemon-reload", "enable kubelet", "unmask containerd", "disable kubelet", "try-restart kubelet"]
        {
            assert_eq!(say(line), (String::new(), 0, Vec::new()), "{line}");
        }
    }

    /// It is stopped, so the command did what it was asked to do; how is said.
    #[test]
    fn says_that_it_had_to_kill() {
        let (said, code, asked) = say("stop leaving");
        assert_eq!((said.as_str(), code), ("leaving.service did not end in time and was killed.\n", 0));
        assert_eq!(asked, [r#"{"verb":"stop-service","service":"leaving"}"#]);
    }

    /// What kubeadm's checks read.
    #[test]
    fn answers_as_systemctl_does() {
        for (line, text, code) in [
            ("is-active containerd", "active\n", 0),
            ("is-active kubelet", "activating\n", NOT_ACTIVE),
            ("is-active --quiet kubelet", "", NOT_ACTIVE),
            ("is-active cloud-init", "failed\n", NOT_ACTIVE),
            ("is-active leaving", "deactivating\n", NOT_ACTIVE),
            ("is-active firewalld", "inactive\n", NOT_ACTIVE),
            ("is-enabled kubelet", "enabled\n", 0),
            (
                "status kubelet",
                "kubelet.service\n     Loaded: loaded (supervisor; enabled)\n     Active: activating\n",
                NOT_ACTIVE,
            ),
            (
                "start firewalld",
                "Failed to start firewalld.service: Unit firewalld.service not found.\n",
                NOT_FOUND,
            ),
            ("status firewalld", "Unit firewalld.service could not be found.\n", UNKNOWN),
        ] {
            let (said, exit, asked) = say(line);
            assert_eq!((said.as_str(), exit, asked.len()), (text, code, 0), "{line}");
        }
        assert_eq!(say("edit kubelet").1, 1);
    }
}
