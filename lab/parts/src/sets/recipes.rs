//! The table of sets. Versions are those that the Go module registry has completely; see `tools/README.md` before
//! changing one. `tests.rs` checks every line against the embedded `go.mod`.

use super::{Content, Linkage, ModuleFiles, Program, Recipe, Set};

/// A recipe with the embedded pins of `tools/<name>` and defaults for the rest.
macro_rules! recipe {
    ($name:literal, $module:literal, $version:literal, { $($field:ident: $value:expr),* $(,)? }) => {
        Recipe {
            name: $name,
            version: $version,
            module: $module,
            go_mod: include_str!(concat!("../../../../tools/", $name, "/go.mod")),
            go_sum: include_str!(concat!("../../../../tools/", $name, "/go.sum")),
            $($field: $value,)*
            ..EMPTY
        }
    };
}

const EMPTY: Recipe = Recipe {
    name: "",
    version: "",
    module: "",
    go_mod: "",
    go_sum: "",
    programs: &[],
    files: &[],
    stamps: &[],
    tags: &[],
    linkage: Linkage::Go,
    peak_mebibytes: 0,
    kept_mebibytes: 0,
};

const fn program(name: &'static str, package: &'static str) -> Program {
    Program { name, package, content: Content::Main }
}

const fn tests(name: &'static str, package: &'static str) -> Program {
    Program { name, package, content: Content::Tests }
}

const fn files(module: &'static str, source: &'static str, target: &'static str) -> ModuleFiles {
    ModuleFiles { module, source, target }
}

pub(super) fn recipe(set: Set) -> &'static Recipe {
    match set {
        Set::Etcd36 => &ETCD_3_6,
        Set::Etcd37 => &ETCD_3_7,
        Set::Kubernetes133 => &KUBERNETES_1_33,
        Set::Kubernetes134 => &KUBERNETES_1_34,
        Set::Kubernetes135 => &KUBERNETES_1_35,
        Set::Kubernetes136 => &KUBERNETES_1_36,
        Set::Kubernetes137 => &KUBERNETES_1_37,
        Set::Conformance134 => &CONFORMANCE_1_34,
        Set::UpstreamCrds => &UPSTREAM_CRDS,
        Set::NeighbourCrds => &NEIGHBOUR_CRDS,
        Set::GatewayApi => &GATEWAY_API,
        Set::Coredns => &COREDNS,
        Set::Konnectivity => &KONNECTIVITY,
        Set::CniPlugins => &CNI_PLUGINS,
        Set::Helm => &HELM,
        Set::KubeVip => &KUBE_VIP,
        Set::KubeVipCloudProvider => &KUBE_VIP_CLOUD_PROVIDER,
        Set::Flannel => &FLANNEL,
        Set::Traefik => &TRAEFIK,
        Set::ClusterApi111 => &CLUSTER_API_1_11,
        Set::Prometheus => &PROMETHEUS,
        Set::Versitygw => &VERSITYGW,
        Set::ClusterApi => &CLUSTER_API,
        Set::ClusterApiOpenstack => &CLUSTER_API_OPENSTACK,
        Set::CloudProviderOpenstack => &CLOUD_PROVIDER_OPENSTACK,
    }
}

const ETCD_PROGRAMS: &[Program] = &[
    program("etcd", "go.etcd.io/etcd/server/v3"),
    program("etcdctl", "go.etcd.io/etcd/etcdctl/v3"),
    program("etcdutl", "go.etcd.io/etcd/etcdutl/v3"),
];

const ETCD_3_6: Recipe = recipe!("etcd-3.6", "go.etcd.io/etcd/server/v3", "v3.6.16", {
    programs: ETCD_PROGRAMS,
    peak_mebibytes: 1000,
    kept_mebibytes: 60,
});

const ETCD_3_7: Recipe = recipe!("etcd-3.7", "go.etcd.io/etcd/server/v3", "v3.7.3", {
    programs: ETCD_PROGRAMS,
    peak_mebibytes: 1200,
    kept_mebibytes: 70,
});

const KUBERNETES_PROGRAMS: &[Program] = &[
    program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    program("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    program("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
    program("kubeadm", "k8s.io/kubernetes/cmd/kubeadm"),
    program("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"),
    program("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
];

/// Without these kubeadm refuses to work and `kubectl version` lies. The registry does not say which commit a
/// version is, so the commit is zeros; the date is the epoch, so that the same pins give the same bytes.
const KUBERNETES_STAMPS: &[&str] = &[
    "k8s.io/component-base/version.gitVersion={version}",
    "k8s.io/component-base/version.gitMajor={major}",
    "k8s.io/component-base/version.gitMinor={minor}",
    "k8s.io/component-base/version.gitTreeState=clean",
    "k8s.io/component-base/version.gitCommit=0000000000000000000000000000000000000000",
    "k8s.io/component-base/version.buildDate=1970-01-01T00:00:00Z",
    "k8s.io/client-go/pkg/version.gitVersion={version}",
    "k8s.io/client-go/pkg/version.gitMajor={major}",
    "k8s.io/client-go/pkg/version.gitMinor={minor}",
    "k8s.io/client-go/pkg/version.gitTreeState=clean",
    "k8s.io/client-go/pkg/version.gitCommit=0000000000000000000000000000000000000000",
    "k8s.io/client-go/pkg/version.buildDate=1970-01-01T00:00:00Z",
];

macro_rules! kubernetes {
    ($name:literal, $version:literal) => {
        recipe!($name, "k8s.io/kubernetes", $version, {
            programs: KUBERNETES_PROGRAMS,
            stamps: KUBERNETES_STAMPS,
            peak_mebibytes: 6000,
            kept_mebibytes: 600,
        })
    };
}

const KUBERNETES_1_33: Recipe = kubernetes!("kubernetes-1.33", "v1.33.0");
const KUBERNETES_1_34: Recipe = kubernetes!("kubernetes-1.34", "v1.34.10");
const KUBERNETES_1_35: Recipe = kubernetes!("kubernetes-1.35", "v1.35.8");
const KUBERNETES_1_36: Recipe = kubernetes!("kubernetes-1.36", "v1.36.4");
const KUBERNETES_1_37: Recipe = kubernetes!("kubernetes-1.37", "v1.37.1");

/// Kubernetes' own end-to-end tests, and what the images consist of that they run. A set of its own: it takes longer to
/// build than Kubernetes itself.
const CONFORMANCE_1_34: Recipe = recipe!("conformance-1.34", "k8s.io/kubernetes", "v1.34.10", {
    programs: &[
        tests("e2e.test", "k8s.io/kubernetes/test/e2e"),
        program("ginkgo", "github.com/onsi/ginkgo/v2/ginkgo"),
        program("agnhost", "k8s.io/kubernetes/test/images/agnhost"),
        program("nnp", "k8s.io/kubernetes/test/images/nonewprivs"),
        program("sample-apiserver", "k8s.io/sample-apiserver"),
    ],
    files: &[
        files("k8s.io/kubernetes", "test/images/agnhost/porter/localhost.crt", "localhost.crt"),
        files("k8s.io/kubernetes", "test/images/agnhost/porter/localhost.key", "localhost.key"),
    ],
    stamps: KUBERNETES_STAMPS,
    peak_mebibytes: 10000,
    kept_mebibytes: 400,
});

const CAPI: &str = "sigs.k8s.io/cluster-api";
const CAPO: &str = "sigs.k8s.io/cluster-api-provider-openstack";

/// The schemas that ours are compared with, and that interoperation tests apply.
const UPSTREAM_CRDS: Recipe = recipe!("upstream-crds", "sigs.k8s.io/cluster-api", "v1.12.8", {
    files: &[
        files(CAPI, "config/crd/bases", "cluster-api/core"),
        files(CAPI, "bootstrap/kubeadm/config/crd/bases", "cluster-api/bootstrap-kubeadm"),
        files(CAPI, "controlplane/kubeadm/config/crd/bases", "cluster-api/control-plane-kubeadm"),
        files(CAPI, "cmd/clusterctl/config/crd/bases", "cluster-api/clusterctl"),
        files(CAPO, "config/crd/bases", "cluster-api-provider-openstack"),
        files("github.com/k-orc/openstack-resource-controller/v2", "config/crd/bases", "openstack-resource-controller"),
    ],
    peak_mebibytes: 200,
    kept_mebibytes: 10,
});

const CILIUM: &str = "github.com/cilium/cilium";
const PROMETHEUS_OPERATOR: &str = "github.com/prometheus-operator/prometheus-operator";

/// The schemas of what is rendered for others in the management cluster.
const NEIGHBOUR_CRDS: Recipe = recipe!("neighbour-crds", "github.com/cilium/cilium", "v1.20.2", {
    files: &[
        files(
            CILIUM,
            "pkg/k8s/apis/cilium.io/client/crds/v2/ciliumnetworkpolicies.yaml",
            "cilium/ciliumnetworkpolicies.yaml",
        ),
        files(
            PROMETHEUS_OPERATOR,
            "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
            "prometheus-operator/podmonitors.yaml",
        ),
        files(
            PROMETHEUS_OPERATOR,
            "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
            "prometheus-operator/prometheusrules.yaml",
        ),
    ],
    peak_mebibytes: 250,
    kept_mebibytes: 2,
});

const GATEWAY_API: Recipe = recipe!("gateway-api", "sigs.k8s.io/gateway-api", "v1.4.1", {
    files: &[
        files("sigs.k8s.io/gateway-api", "config/crd/standard", "standard"),
        files("sigs.k8s.io/gateway-api", "config/crd/experimental", "experimental"),
    ],
    peak_mebibytes: 100,
    kept_mebibytes: 5,
});

const COREDNS: Recipe = recipe!("coredns", "github.com/coredns/coredns", "v1.14.7", {
    programs: &[program("coredns", "github.com/coredns/coredns")],
    peak_mebibytes: 4100,
    kept_mebibytes: 80,
});

const KONNECTIVITY: Recipe = recipe!("konnectivity", "sigs.k8s.io/apiserver-network-proxy", "v0.34.0", {
    programs: &[
        program("proxy-server", "sigs.k8s.io/apiserver-network-proxy/cmd/server"),
        program("proxy-agent", "sigs.k8s.io/apiserver-network-proxy/cmd/agent"),
    ],
    peak_mebibytes: 1900,
    kept_mebibytes: 100,
});

const CNI_PLUGINS: Recipe = recipe!("cni-plugins", "github.com/containernetworking/plugins", "v1.9.1", {
    programs: &[
        program("bridge", "github.com/containernetworking/plugins/plugins/main/bridge"),
        program("dummy", "github.com/containernetworking/plugins/plugins/main/dummy"),
        program("host-device", "github.com/containernetworking/plugins/plugins/main/host-device"),
        program("loopback", "github.com/containernetworking/plugins/plugins/main/loopback"),
        program("macvlan", "github.com/containernetworking/plugins/plugins/main/macvlan"),
        program("ptp", "github.com/containernetworking/plugins/plugins/main/ptp"),
        program("vlan", "github.com/containernetworking/plugins/plugins/main/vlan"),
        program("host-local", "github.com/containernetworking/plugins/plugins/ipam/host-local"),
        program("static", "github.com/containernetworking/plugins/plugins/ipam/static"),
        program("bandwidth", "github.com/containernetworking/plugins/plugins/meta/bandwidth"),
        program("firewall", "github.com/containernetworking/plugins/plugins/meta/firewall"),
        program("portmap", "github.com/containernetworking/plugins/plugins/meta/portmap"),
        program("sbr", "github.com/containernetworking/plugins/plugins/meta/sbr"),
        program("tuning", "github.com/containernetworking/plugins/plugins/meta/tuning"),
        program("vrf", "github.com/containernetworking/plugins/plugins/meta/vrf"),
    ],
    stamps: &["github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion={version}"],
    peak_mebibytes: 500,
    kept_mebibytes: 50,
});

/// Charts that ask for a Kubernetes version without a cluster see the one helm's libraries are of.
const HELM: Recipe = recipe!("helm", "helm.sh/helm/v3", "v3.22.0", {
    programs: &[program("helm", "helm.sh/helm/v3/cmd/helm")],
    stamps: &[
        "helm.sh/helm/v3/internal/version.version={version}",
        "helm.sh/helm/v3/internal/version.gitTreeState=clean",
        "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1",
        "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=37",
        "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1",
        "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=37",
    ],
    peak_mebibytes: 2400,
    kept_mebibytes: 60,
});

const KUBE_VIP: Recipe = recipe!("kube-vip", "github.com/kube-vip/kube-vip", "v0.9.1", {
    programs: &[program("kube-vip", "github.com/kube-vip/kube-vip")],
    stamps: &["main.Version={version}"],
    peak_mebibytes: 3100,
    kept_mebibytes: 60,
});

/// A set of its own, so that kube-vip does not decide the versions of its libraries.
const KUBE_VIP_CLOUD_PROVIDER: Recipe = recipe!("kube-vip-cloud-provider", "github.com/kube-vip/kube-vip-cloud-provider", "v0.0.12", {
    programs: &[program("kube-vip-cloud-provider", "github.com/kube-vip/kube-vip-cloud-provider")],
    stamps: &["k8s.io/component-base/version.gitVersion={version}"],
    peak_mebibytes: 3500,
    kept_mebibytes: 75,
});

const FLANNEL: Recipe = recipe!("flannel", "github.com/flannel-io/flannel", "v0.26.7", {
    programs: &[program("flanneld", "github.com/flannel-io/flannel")],
    stamps: &["github.com/flannel-io/flannel/pkg/version.Version={version}"],
    linkage: Linkage::C,
    peak_mebibytes: 2000,
    kept_mebibytes: 50,
});

const TRAEFIK: Recipe = recipe!("traefik", "github.com/traefik/traefik/v3", "v3.6.12", {
    programs: &[program("traefik", "github.com/traefik/traefik/v3/cmd/traefik")],
    stamps: &["github.com/traefik/traefik/v3/pkg/version.Version={number}"],
    peak_mebibytes: 10000,
    kept_mebibytes: 200,
});

const CLUSTER_API_STAMPS: &[&str] = &[
    "sigs.k8s.io/cluster-api/version.gitVersion={version}",
    "sigs.k8s.io/cluster-api/version.gitMajor={major}",
    "sigs.k8s.io/cluster-api/version.gitMinor={minor}",
    "sigs.k8s.io/cluster-api/version.gitTreeState=clean",
];

/// The oldest minor that control planes are tried beside. It has its own CRDs; those of the newer one are in
/// `UPSTREAM_CRDS`.
const CLUSTER_API_1_11: Recipe = recipe!("cluster-api-1.11", "sigs.k8s.io/cluster-api", "v1.11.7", {
    programs: &[program("cluster-api-core", "sigs.k8s.io/cluster-api")],
    files: &[files(CAPI, "config/crd/bases", "core/crd"), files(CAPI, "config/webhook", "core/webhook")],
    stamps: CLUSTER_API_STAMPS,
    peak_mebibytes: 4000,
    kept_mebibytes: 100,
});

/// Without its discovery of cloud services, which is most of it: tests name their targets.
const PROMETHEUS: Recipe = recipe!("prometheus", "github.com/prometheus/prometheus", "v0.315.0", {
    programs: &[program("prometheus", "github.com/prometheus/prometheus/cmd/prometheus")],
    stamps: &["github.com/prometheus/common/version.Version={number}"],
    tags: &["remove_all_sd"],
    peak_mebibytes: 4000,
    kept_mebibytes: 120,
});

/// An S3 server over a directory, which backups are tested against.
const VERSITYGW: Recipe = recipe!("versitygw", "github.com/versity/versitygw", "v1.8.0", {
    programs: &[program("versitygw", "github.com/versity/versitygw/cmd/versitygw")],
    stamps: &["main.Version={version}"],
    peak_mebibytes: 2500,
    kept_mebibytes: 70,
});

const CLUSTER_API: Recipe = recipe!("cluster-api", "sigs.k8s.io/cluster-api", "v1.12.8", {
    programs: &[
        program("cluster-api-core", "sigs.k8s.io/cluster-api"),
        program("cluster-api-bootstrap-kubeadm", "sigs.k8s.io/cluster-api/bootstrap/kubeadm"),
        program("clusterctl", "sigs.k8s.io/cluster-api/cmd/clusterctl"),
    ],
    files: &[
        files(CAPI, "metadata.yaml", "metadata.yaml"),
        files(CAPI, "config/webhook", "core/webhook"),
        files(CAPI, "bootstrap/kubeadm/config/webhook", "bootstrap-kubeadm/webhook"),
    ],
    stamps: CLUSTER_API_STAMPS,
    peak_mebibytes: 4000,
    kept_mebibytes: 200,
});

const CLUSTER_API_OPENSTACK: Recipe = recipe!("cluster-api-openstack", "sigs.k8s.io/cluster-api-provider-openstack", "v0.14.2", {
    programs: &[program("cluster-api-provider-openstack", "sigs.k8s.io/cluster-api-provider-openstack")],
    files: &[files(CAPO, "metadata.yaml", "metadata.yaml"), files(CAPO, "templates", "templates")],
    peak_mebibytes: 4000,
    kept_mebibytes: 80,
});

const CLOUD_PROVIDER_OPENSTACK: Recipe = recipe!("cloud-provider-openstack", "k8s.io/cloud-provider-openstack", "v1.34.1", {
    programs: &[
        program(
            "openstack-cloud-controller-manager",
            "k8s.io/cloud-provider-openstack/cmd/openstack-cloud-controller-manager",
        ),
        program("cinder-csi-plugin", "k8s.io/cloud-provider-openstack/cmd/cinder-csi-plugin"),
    ],
    files: &[files("k8s.io/cloud-provider-openstack", "charts", "charts")],
    stamps: &["k8s.io/component-base/version.gitVersion={version}"],
    peak_mebibytes: 5000,
    kept_mebibytes: 150,
});
