//! `systemctl` inside a machine: the words that installers and cloud-init scripts use, said to our supervisor.
//!
//! Machines have no systemd, but kubeadm stops, starts and asks for `kubelet.service`, and people's scripts restart
//! `containerd`. Units are the supervisor's services; all of them count as enabled. Exit codes and texts are those of
//! systemctl where kubeadm or scripts read them. Nothing is kept over a restart of the machine.

use std::{
    ffi::OsString,
    fmt::Write as _,
    io::{self, Write},
    process::ExitCode,
};

use super::control::{Request, ask_here};
use crate::{
    error::Result,
    name::Name,
    service::{ServiceState, ServiceStatus},
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
struct Answer {
    text: String,
    code: u8,
}

/// Runs one command line.
pub(super) fn run(arguments: &[OsString]) -> ExitCode {
    let words: Vec<String> =
        arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let answer = respond(&words, &mut ask_here);
    let stream: &mut dyn Write =
        if answer.code == NOT_FOUND || answer.code == 1 { &mut io::stderr() } else { &mut io::stdout() };
    // Nobody listening is no failure of the command.
    let _ = stream.write_all(answer.text.as_bytes());
    ExitCode::from(answer.code)
}

type Ask<'a> = &'a mut dyn FnMut(&Request) -> Result<Vec<ServiceStatus>>;

fn respond(words: &[String], ask: Ask<'_>) -> Answer {
    let (options, rest): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| word.starts_with('-'));
    let has = |name: &str| options.iter().any(|option| *option == name);
    let Some((verb, units)) = rest.split_first() else {
        return Answer { text: "a verb is missing\n".to_owned(), code: 1 };
    };
    let units: Vec<&str> = units.iter().map(|unit| unit.strip_suffix(".service").unwrap_or(unit)).collect();
    let services = match ask(&Request::Status) {
        Ok(services) => services,
        Err(error) => return Answer { text: format!("{error}\n"), code: 1 },
    };
    let quiet = has("-q") || has("--quiet");
    match verb.as_str() {
        "is-active" | "is-failed" => states(&services, &units, quiet),
        "is-enabled" => enabled(&services, &units, quiet),
        "status" => status(&services, &units),
        "is-system-running" => Answer { text: "running\n".to_owned(), code: 0 },
        "enable" if !has("--now") => known(&services, &units, "enable"),
        "enable" | "start" => act(&services, &units, "start", ask),
        "stop" => act(&services, &units, "stop", ask),
        "restart" | "try-restart" | "reload-or-restart" | "force-reload" => {
            act(&services, &units, "restart", ask)
        }
        verb if NOTHING.contains(&verb) => Answer { text: String::new(), code: 0 },
        verb => Answer { text: format!("{verb}: there is no systemd in this machine\n"), code: 1 },
    }
}

fn find<'a>(services: &'a [ServiceStatus], unit: &str) -> Option<&'a ServiceStatus> {
    services.iter().find(|service| service.name.as_str() == unit)
}

fn known(services: &[ServiceStatus], units: &[&str], verb: &str) -> Answer {
    match units.iter().find(|unit| find(services, unit).is_none()) {
        Some(unit) => not_found(unit, verb),
        None => Answer { text: String::new(), code: 0 },
    }
}

fn not_found(unit: &str, verb: &str) -> Answer {
    let text = format!("Failed to {verb} {unit}.service: Unit {unit}.service not found.\n");
    Answer { text, code: NOT_FOUND }
}

fn act(services: &[ServiceStatus], units: &[&str], verb: &str, ask: Ask<'_>) -> Answer {
    for unit in units {
        if find(services, unit).is_none() {
            return not_found(unit, verb);
        }
        let request = Name::new(*unit).map(|service| match verb {
            "start" => Request::StartService { service },
            "stop" => Request::StopService { service },
            _ => Request::RestartService { service },
        });
        if let Err(error) = request.and_then(|request| ask(&request)) {
            return Answer { text: format!("Failed to {verb} {unit}.service: {error}\n"), code: 1 };
        }
    }
    Answer { text: String::new(), code: 0 }
}

fn word(service: Option<&ServiceStatus>) -> &'static str {
    match service.map(|service| &service.state) {
        Some(ServiceState::Running(_)) => "active",
        // It was told to run and waits for its files, as a unit that restarts until it is configured.
        Some(ServiceState::Waiting | ServiceState::Restarting) => "activating",
        Some(ServiceState::Ended(code)) if *code != 0 => "failed",
        Some(ServiceState::Ended(_) | ServiceState::Stopped) | None => "inactive",
    }
}

fn states(services: &[ServiceStatus], units: &[&str], quiet: bool) -> Answer {
    let words: Vec<&str> = units.iter().map(|unit| word(find(services, unit))).collect();
    let text = if quiet { String::new() } else { words.join("\n") + "\n" };
    Answer { text, code: if words.contains(&"active") { 0 } else { NOT_ACTIVE } }
}

fn enabled(services: &[ServiceStatus], units: &[&str], quiet: bool) -> Answer {
    match units.iter().find(|unit| find(services, unit).is_none()) {
        Some(unit) => Answer {
            text: format!("Failed to get unit file state for {unit}.service: No such file or directory\n"),
            code: 1,
        },
        None if quiet => Answer { text: String::new(), code: 0 },
        None => Answer { text: units.iter().map(|_| "enabled\n").collect(), code: 0 },
    }
}

fn status(services: &[ServiceStatus], units: &[&str]) -> Answer {
    let mut answer = Answer { text: String::new(), code: 0 };
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
            Ok(vec![
                service("containerd", ServiceState::Running(7)),
                service("kubelet", ServiceState::Waiting),
                service("cloud-init", ServiceState::Ended(1)),
            ])
        });
        (answer.text, answer.code, asked.into_iter().skip(1).collect())
    }

    #[test]
    fn acts_on_services() {
        for (line, request) in [
            ("start kubelet", r#"{"verb":"start-service","service":"kubelet"}"#),
            ("enable --now kubelet.service", r#"{"verb":"start-service","service":"kubelet"}"#),
            ("stop kubelet", r#"{"verb":"stop-service","service":"kubelet"}"#),
            ("--no-block restart containerd", r#"{"verb":"restart-service","service":"containerd"}"#),
        ] {
            assert_eq!(say(line), (String::new(), 0, vec![request.to_owned()]), "{line}");
        }
        for line in ["daemon-reload", "enable kubelet", "unmask containerd"] {
            assert_eq!(say(line), (String::new(), 0, Vec::new()), "{line}");
        }
    }

    /// What kubeadm's checks read.
    #[test]
    fn answers_as_systemctl_does() {
        for (line, text, code) in [
            ("is-active containerd", "active\n", 0),
            ("is-active kubelet", "activating\n", NOT_ACTIVE),
            ("is-active --quiet kubelet", "", NOT_ACTIVE),
            ("is-active cloud-init", "failed\n", NOT_ACTIVE),
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
