//! The distribution's cloud-init in a machine, with user data as users write it.

use std::path::Path;
use std::time::{Duration, Instant};

use hangar_cloud::driver::namespaces::{MachineImage, cloud_init};
use hangar_machine::{Bind, Machine, Name, Service, ServiceState};

use crate::packages;
use crate::support::{PROGRAM, bench};
use crate::world::{add_server, topology};

const IN_MACHINE: &str = "/usr/local/lib/hangar/supervisor";

fn image() -> MachineImage {
    let mut image = MachineImage::default();
    image.layers.usr = vec![packages::for_cloud_init().usr(), packages::for_machines().usr()];
    image.binds.push(Bind { source: PROGRAM.into(), target: IN_MACHINE.into(), read_only: true });
    image.files = cloud_init::files();
    image.files.push(cloud_init::systemctl(IN_MACHINE, &["supervise"]));
    let name = |text: &str| Name::new(text).unwrap();
    let mut waiting = Service::new(name("kubelet"), ["sleep", "1000"]);
    waiting.when_exists = Some("/var/lib/kubelet/config.yaml".into());
    image.services = vec![waiting, cloud_init::service(Vec::new()).unwrap()];
    image
}

fn wait_for_end(machine: &Machine) -> i32 {
    let deadline = Instant::now() + Duration::from_mins(10);
    loop {
        let services = machine.services().unwrap();
        let found = services.iter().find(|service| service.name.as_str() == cloud_init::SERVICE).unwrap();
        if let ServiceState::Ended(code) = found.state {
            return code;
        }
        assert!(
            Instant::now() < deadline,
            "{found:?}\n{}",
            machine.logs("cloud-init-output", None).unwrap_or_default()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn user_data_is_followed_once() {
    let bench = bench("cloud-init", 30);
    let mut driver = bench.driver_with([("v1.34.10", image())]);
    let mut world = topology(30);
    let id = add_server(&mut world, 10, "v1.34.10");
    let user_data = r#"## template: jinja
#cloud-config
write_files:
- path: /etc/kubernetes/kubeadm-join.yaml
  owner: root:root
  permissions: '0640'
  content: |
    name: '{{ ds.meta_data.hostname }}'
    short: '{{ local_hostname }}'
    provider-id: "openstack:///{{ v1.instance_id }}"
runcmd:
- echo started >> /root/runs
- [sh, -c, 'mkdir -p /var/lib/kubelet && echo {} > /var/lib/kubelet/config.yaml']
- systemctl enable --now kubelet
- "echo 'hello from the console'"
"#;
    world.servers.get_mut(&id).unwrap().user_data = Some(user_data.as_bytes().to_vec());
    let begin = Instant::now();
    driver.realise(&world);
    let machine = driver.driver.machine(id).unwrap();
    let code = wait_for_end(&machine);
    let console = driver.console(id);
    println!("cloud-init took {:?}\n{console}", begin.elapsed());
    assert_eq!(code, 0, "{console}\n{}", machine.logs("cloud-init", None).unwrap_or_default());
    let read = |path: &str| String::from_utf8(machine.read_file(Path::new(path)).unwrap()).unwrap();
    let expected = format!("name: 'node-10'\nshort: 'node-10'\nprovider-id: \"openstack:///{id}\"\n");
    assert_eq!(read("/etc/kubernetes/kubeadm-join.yaml"), expected);
    assert_eq!(machine.run(["stat", "-c", "%a", "/etc/kubernetes/kubeadm-join.yaml"]).unwrap().trim(), "640");
    assert!(console.contains("hello from the console"), "{console}");
    assert_eq!(machine.run(["systemctl", "is-active", "kubelet"]).unwrap(), "active\n");
    assert_eq!(read("/var/lib/cloud/data/instance-id").trim(), id.to_string());

    // The same instance starts again: commands of the first boot stay done.
    machine.restart(Duration::from_secs(1)).unwrap();
    assert_eq!(wait_for_end(&machine), 0);
    assert_eq!(read("/root/runs"), "started\n");
    driver.realise(&hangar_cloud::topology::Topology::default());
    assert_eq!(bench.left(), Vec::<String>::new());
}
