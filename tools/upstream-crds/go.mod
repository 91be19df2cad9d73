module hangar.invalid/tools/upstream-crds

go 1.24.0

require (
	github.com/k-orc/openstack-resource-controller/v2 v2.4.0
	sigs.k8s.io/cluster-api v1.12.8
	sigs.k8s.io/cluster-api-provider-openstack v0.14.2
)
