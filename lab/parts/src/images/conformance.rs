//! The images that Kubernetes' own conformance tests run, made of programs on this machine.
//!
//! Only their names and tags are upstream's. In place of Alpine's and Debian's programs they have busybox, and bash, curl,
//! dig, getent, ip and nc of the distribution; a busybox that serves pages stands for httpd, nginx and the demo's server.
//! So a test that fails may fail because of its image: look at its container's output first.
//!
//! The tags are those of `test/utils/image/manifest.go` of the version in [`Set::Conformance134`].

use std::path::PathBuf;
use std::process::Command;

use super::{Entry, Image, Source, libraries};
use crate::error::{Error, Result};
use crate::locate::Parts;
use crate::packages::Packages;
use crate::sets::Set;

/// The packages with the programs in them.
pub const PACKAGES: &[&str] =
    &["bash", "bind9-dnsutils", "busybox-static", "curl", "iproute2", "libc-bin", "netcat-openbsd"];

const TESTS: &str = "registry.k8s.io/e2e-test-images";

/// What tests call that busybox has not, or has with other options: its name in an image, and its own.
const PROGRAMS: &[(&str, &str)] = &[
    ("bash", "bash"),
    ("curl", "curl"),
    ("dig", "dig"),
    ("getent", "getent"),
    ("ip", "ip"),
    ("nc", "nc.openbsd"),
    // busybox's own does not hand on variables such as `data-1`.
    ("sh", "bash"),
];

const USERS: &str = "root:x:0:0:root:/root:/bin/sh\n\
                     user-defined-in-image:x:1000:1000::/home/user:/bin/sh\n\
                     nobody:x:65534:65534::/:/bin/false\n";
const GROUPS: &str = "root:x:0:\nuser-defined-in-image:x:1000:\n\
                      group-defined-in-image:x:50000:user-defined-in-image\nnobody:x:65534:\n";
const PAGE: (&str, &str) = ("index.html", "<html><body><h1>It works!</h1></body></html>\n");

/// All of them. The sets of the tests and of etcd must be built.
pub fn conformance(parts: &Parts, packages: &Packages) -> Result<Vec<Image>> {
    let shelf = Shelf::new(packages)?;
    let of_tests = |program: &str| parts.program(Set::Conformance134, program);
    let mut images = vec![
        agnhost(shelf.large("agnhost:2.56")?, parts)?,
        shelf.large("jessie-dnsutils:1.7")?.with_command(["sh"]),
        shelf.large("busybox:1.37.0-1")?.with_command(["sh"]),
        shelf.small("nonroot:1.4").with_command(["sh"]).with_user("1234"),
        // The test is about what its mode allows it.
        shelf
            .small("nonewprivs:1.3")
            .with("/usr/local/bin/nnp", Entry::File(Source::Path(of_tests("nnp")?), 0o6755))
            .with_command(["nnp"]),
        shelf
            .small("sample-apiserver:1.29.2")
            .with_program("/sample-apiserver", of_tests("sample-apiserver")?)
            .with_entrypoint(["/sample-apiserver"]),
        shelf
            .named("registry.k8s.io/etcd:3.6.4-0")
            .with_program("/usr/local/bin/etcd", parts.program(Set::Etcd36, "etcd")?)
            .with_command(["/usr/local/bin/etcd"]),
    ];
    for (name, pages) in [
        ("httpd:2.4.38-4", &[PAGE][..]),
        // A newer version is another image.
        ("httpd:2.4.39-4", &[PAGE, ("new", "1")]),
        ("nginx:1.14-4", &[PAGE]),
        ("nginx:1.15-4", &[PAGE, ("new", "1")]),
        ("nautilus:1.7", &[("data.json", "{\"image\": \"nautilus.jpg\"}\n")]),
        ("kitten:1.7", &[("data.json", "{\"image\": \"kitten.jpg\"}\n")]),
    ] {
        images.push(server(shelf.small(name), pages));
    }
    Ok(images)
}

/// The program that most pods of tests run.
fn agnhost(image: Image, parts: &Parts) -> Result<Image> {
    let files = parts.files(Set::Conformance134)?;
    let file = |name: &str| Entry::File(Source::Path(files.join(name)), 0o644);
    Ok(image
        .with_program("/agnhost", parts.program(Set::Conformance134, "agnhost")?)
        .with("/agnhost-2", Entry::Link("agnhost".to_owned()))
        .with("/localhost.crt", file("localhost.crt"))
        .with("/localhost.key", file("localhost.key"))
        .with("/uploads", Entry::Directory(0o777))
        .with_entrypoint(["/agnhost"])
        .with_command(["pause"]))
}

/// Serves pages, and ends when it is asked to.
fn server(image: Image, pages: &[(&str, &str)]) -> Image {
    let serve = "trap 'exit 0' TERM INT QUIT; busybox httpd -f -p 80 -h /pages & wait $!";
    let image = pages.iter().fold(image, |image, (name, text)| {
        let page = Entry::File(Source::Bytes(text.as_bytes().to_vec()), 0o644);
        image.with(&format!("/pages/{name}"), page)
    });
    image.with_command(["sh", "-c", serve])
}

/// What images begin with.
struct Shelf<'a> {
    packages: &'a Packages,
    busybox: PathBuf,
    applets: Vec<String>,
}

impl<'a> Shelf<'a> {
    fn new(packages: &'a Packages) -> Result<Self> {
        let busybox = program(packages, "busybox")?;
        let failed = |reason: String| Error::Image { image: TESTS.to_owned(), reason };
        let output = Command::new(&busybox).arg("--list").output();
        let output = output.map_err(|error| failed(format!("{}: {error}", busybox.display())))?;
        let listed = String::from_utf8_lossy(&output.stdout);
        let applets: Vec<String> =
            listed.lines().filter(|name| *name != "busybox").map(str::to_owned).collect();
        if applets.is_empty() {
            return Err(failed(format!("{} lists no applets", busybox.display())));
        }
        Ok(Self { packages, busybox, applets })
    }

    /// With busybox alone.
    fn small(&self, name: &str) -> Image {
        self.named(&format!("{TESTS}/{name}"))
    }

    fn named(&self, reference: &str) -> Image {
        let none: [&str; 0] = [];
        let text = |text: &str| Entry::File(Source::Bytes(text.as_bytes().to_vec()), 0o644);
        let image = Image::new(reference, none)
            .with("/etc/passwd", text(USERS))
            .with("/etc/group", text(GROUPS))
            .with("/etc/nsswitch.conf", text("hosts: files dns\n"))
            .with("/root", Entry::Directory(0o700))
            .with("/home/user", Entry::Directory(0o755))
            .with("/var/tmp", Entry::Directory(0o1777))
            .with_program("/bin/busybox", &self.busybox);
        let image = ["proc", "sys", "dev", "run", "mnt", "usr/bin"]
            .iter()
            .fold(image, |image, name| image.with(name, Entry::Directory(0o755)));
        let link = || Entry::Link("busybox".to_owned());
        self.applets.iter().fold(image, |image, name| image.with(&format!("/bin/{name}"), link()))
    }

    /// With the programs too.
    fn large(&self, name: &str) -> Result<Image> {
        let mut image = self.small(name);
        let mut loaded = Vec::new();
        for (name, own) in PROGRAMS {
            let source = program(self.packages, own)?;
            image = image.with_program(&format!("/bin/{name}"), &source);
            loaded.push(source);
        }
        let loaded: Vec<_> = loaded.iter().map(PathBuf::as_path).collect();
        libraries::add(image, &loaded, Some(self.packages))
    }
}

fn program(packages: &Packages, name: &str) -> Result<PathBuf> {
    packages.program(name).ok_or_else(|| Error::Image {
        image: TESTS.to_owned(),
        reason: format!("the program {name} is neither in the unpacked packages nor on this machine"),
    })
}
