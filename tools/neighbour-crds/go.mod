module hangar.invalid/tools/neighbour-crds

go 1.24.0

require (
	github.com/cilium/cilium v1.20.2
	github.com/prometheus-operator/prometheus-operator v0.91.0
)
