//! An etcd cluster whose members a test starts, stops and calls.

use hangar_etcd::{Limits, Member, MemberOptions, MemberStatus};
use hangar_parts::{Process, Set};

use crate::place::{Place, address, port, until};
use crate::writer::Writer;

pub(crate) struct Cluster {
    pub(crate) place: Place,
    pub(crate) members: Vec<Running>,
}

pub(crate) struct Running {
    pub(crate) name: String,
    pub(crate) client_url: String,
    pub(crate) peer_url: String,
    /// None while it is stopped.
    process: Option<Process>,
}

impl Cluster {
    /// Starts so many members and waits until they have a leader.
    pub(crate) async fn start(count: usize) -> Self {
        Self::start_with(count, &[]).await
    }

    pub(crate) async fn start_with(count: usize, arguments: &[String]) -> Self {
        let mut cluster = Self { place: Place::new(), members: Vec::new() };
        for number in 0..count {
            cluster.members.push(Running::new(number));
        }
        let initial = cluster.initial();
        for number in 0..count {
            cluster.run(number, "new", &initial, arguments);
        }
        for number in 0..count {
            cluster.led(number).await;
        }
        cluster
    }

    /// A member that does not run yet.
    pub(crate) fn prepare(&mut self) -> usize {
        self.members.push(Running::new(self.members.len()));
        self.members.len() - 1
    }

    pub(crate) fn initial(&self) -> String {
        let pairs: Vec<_> =
            self.members.iter().map(|member| format!("{}={}", member.name, member.peer_url)).collect();
        pairs.join(",")
    }

    pub(crate) fn run(&mut self, number: usize, state: &str, initial: &str, more: &[String]) {
        let member = &self.members[number];
        let pair = self.place.server_pair(&member.name);
        let (certificate, key) = (pair.certificate.display(), pair.key.display());
        let authorities = self.place.path("ca.crt");
        let authorities = authorities.display();
        let mut arguments = vec![
            format!("--name={}", member.name),
            format!("--data-dir={}", self.place.path(&format!("{}.data", member.name)).display()),
            format!("--listen-client-urls={}", member.client_url),
            format!("--advertise-client-urls={}", member.client_url),
            format!("--listen-peer-urls={}", member.peer_url),
            format!("--initial-advertise-peer-urls={}", member.peer_url),
            format!("--initial-cluster={initial}"),
            format!("--initial-cluster-state={state}"),
            format!("--cert-file={certificate}"),
            format!("--key-file={key}"),
            format!("--trusted-ca-file={authorities}"),
            "--client-cert-auth=true".to_owned(),
            format!("--peer-cert-file={certificate}"),
            format!("--peer-key-file={key}"),
            format!("--peer-trusted-ca-file={authorities}"),
            "--peer-client-cert-auth=true".to_owned(),
            // The data is thrown away, so it need not survive a power cut.
            "--unsafe-no-fsync=true".to_owned(),
        ];
        arguments.extend_from_slice(more);
        let process = self.place.start(&member.name, Set::Etcd36, "etcd", arguments);
        self.members[number].process = Some(process);
    }

    pub(crate) fn kill(&mut self, number: usize) {
        self.members[number].process.take().unwrap().kill().unwrap();
    }

    pub(crate) fn member(&self, number: usize) -> Member {
        self.member_with(number, MemberOptions::default())
    }

    pub(crate) fn member_with(&self, number: usize, options: MemberOptions) -> Member {
        let running = &self.members[number];
        Member::new(&running.name, &running.client_url, &self.place.credentials(), options).unwrap()
    }

    /// Its limits are those of tests that wait for a failure.
    pub(crate) fn impatient(&self, number: usize) -> Member {
        let call = std::time::Duration::from_secs(3);
        self.member_with(
            number,
            MemberOptions { limits: Limits { call, ..Limits::default() }, ..Default::default() },
        )
    }

    pub(crate) fn writer(&self, number: usize) -> Writer {
        Writer::new(&self.members[number].client_url, &self.place.credentials())
    }

    /// Waits until the member knows a leader.
    pub(crate) async fn led(&self, number: usize) -> MemberStatus {
        let member = self.member(number);
        until("a leader", async || {
            let status = member.status().await.ok()?;
            status.leader.is_some().then_some(status)
        })
        .await
    }

    /// The numbers of the leader and of a follower.
    pub(crate) async fn roles(&self) -> (usize, usize) {
        until("one leader", async || {
            let (mut leader, mut follower) = (None, None);
            for number in 0..self.members.len() {
                let status = self.member(number).status().await.ok()?;
                if status.is_leader() { leader = Some(number) } else { follower = Some(number) }
            }
            Some((leader?, follower?))
        })
        .await
    }
}

impl Running {
    fn new(number: usize) -> Self {
        Self {
            name: format!("etcd-{number}"),
            client_url: format!("https://{}:{}", address(), port()),
            peer_url: format!("https://{}:{}", address(), port()),
            process: None,
        }
    }
}
