# The bare recipe: what `hangar up` runs, as plain processes of one machine, each awaited before the next.
# /bench/commands.sh holds the command lines as arrays; they are those of a cluster that `hangar up` made.
set -u
. /bench/commands.sh
export KUBECONFIG=/bench/admin.conf
mkdir -p /bench/logs /var/lib/kubelet /etc/hangar/resolver /root/.kube
# kube-vip looks only here, or for the files of a pod.
cp /bench/admin.conf /root/.kube/config
cp /bench/admin.conf /etc/kubernetes/admin.conf
cp /bench/kubelet.yaml /var/lib/kubelet/config.yaml
cp /bench/Corefile.resolver /etc/hangar/resolver/Corefile
declare -A processes
began=$(date +%s%N)

start() { # NAME COMMAND...
    local name=$1
    shift
    current=$name
    setsid "$@" >"/bench/logs/$name" 2>&1 </dev/null &
    process=$!
    processes[$process]=$name
}

finish() {
    local now
    now=$(date +%s%N)
    echo "$current $(((now - began) / 1000000))"
    began=$now
}

until_true() { # COMMAND...
    local left=12000
    until "$@" >/dev/null 2>&1; do
        left=$((left - 1))
        if [ $left -eq 0 ] || ! kill -0 "$process" 2>/dev/null; then
            echo "$current did not get ready: $*" >&2
            tail -n 20 "/bench/logs/$current" >&2
            exit 1
        fi
        sleep 0.01
    done
    finish
}

answers() { until_true curl --silent --fail --insecure --max-time 5 "$1"; }
succeeds() {
    if ! wait "$process"; then
        cat "/bench/logs/$current" >&2
        exit 1
    fi
    unset "processes[$process]"
    finish
}

# `up` asks no more of what has no probe; the end looks once more.
lives() { until_true kill -0 "$process"; }

start etcd "${etcd[@]}"
answers http://127.0.0.1:2381/readyz
start kube-apiserver "${kube_apiserver[@]}"
answers "https://$address:6443/readyz"
start kube-controller-manager "${kube_controller_manager[@]}"
answers https://127.0.0.1:10257/healthz
start kube-scheduler "${kube_scheduler[@]}"
answers https://127.0.0.1:10259/healthz
start containerd "${containerd[@]}"
until_true test -S /run/containerd/containerd.sock
start kubelet "${kubelet[@]}"
until_true kubectl wait --for=create --timeout=120s node/management
until_true kubectl wait --for=condition=Ready --timeout=120s node/management
start settings kubectl apply --server-side --filename=/bench/settings.json
succeeds
start provisioner "${provisioner[@]}"
lives
start resolver "${resolver[@]}"
lives
start kube-proxy kube-proxy --config=/bench/kube-proxy.json --hostname-override=management
answers http://127.0.0.1:10256/healthz
start coredns coredns -conf /bench/Corefile.cluster
answers http://127.0.0.1:8181/ready
start kube-vip env vip_nodename=management "${kube_vip[@]}"
lives
# It wants to be a pod.
account=/var/run/secrets/kubernetes.io/serviceaccount
mkdir -p $account
cp /etc/kubernetes/pki/ca.crt $account/ca.crt
kubectl create token --namespace=kube-system kube-vip-cloud-provider >$account/token
start kube-vip-cloud-provider env KUBERNETES_SERVICE_HOST="$address" KUBERNETES_SERVICE_PORT=6443 \
    "${kube_vip_cloud_provider[@]}"
lives
webhooks=https://$address:9443
start install /usr/local/lib/hangar/hangar install --kubeconfig=/bench/admin.conf --webhook-url="$webhooks"
succeeds
start manager /usr/local/lib/hangar/hangar manager --kubeconfig=/bench/admin.conf --webhook-url="$webhooks" \
    --namespace=hangar-system --controllers=all --metrics-address=127.0.0.1:18080
answers http://127.0.0.1:8081/readyz

for process in "${!processes[@]}"; do
    if ! kill -0 "$process"; then
        echo "${processes[$process]} has ended" >&2
        tail -n 20 "/bench/logs/${processes[$process]}" >&2
        exit 1
    fi
done
