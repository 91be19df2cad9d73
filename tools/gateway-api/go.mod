module hangar.invalid/tools/gateway-api

go 1.24.0

require sigs.k8s.io/gateway-api v1.4.1
