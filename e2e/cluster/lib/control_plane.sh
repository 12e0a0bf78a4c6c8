# shellcheck shell=bash
# etcd, API server, controllers, DNS, as plain processes on the host. Sourced, never run.
# The reasons behind unusual flags are in README.md.

ETCD_URL=http://127.0.0.1:12379
ETCD_PEER_URL=http://127.0.0.1:12380
NODE_GRACE=${STOKER_CLUSTER_NODE_GRACE:-8}   # seconds without a lease renewal until a node is NotReady
EVICT_AFTER=${STOKER_CLUSTER_EVICT_AFTER:-2} # seconds from NotReady until its pods are evicted

api_ready() { kubectl get --raw /readyz; }
namespace_ready() { kubectl -n default get serviceaccount/default configmap/kube-root-ca.crt; }
dns_ready() { curl --noproxy '*' --silent --fail --max-time 2 "http://$HOST_IP:8181/ready"; }

load_modules() { # modprobe fails if the modules are built in; then nothing needs loading
  ! command -v modprobe >/dev/null || modprobe --all --quiet br_netfilter loop overlay || log "kernel modules not loaded"
}

start_bridge() {
  # A fixed MAC: otherwise the bridge takes a port's MAC, and when that node dies the other nodes lose the host.
  ip link show "$BRIDGE" >/dev/null 2>&1 || ip link add "$BRIDGE" address 02:00:0a:f0:00:01 type bridge
  ip address replace "$HOST_IP/24" dev "$BRIDGE"
  ip link set "$BRIDGE" up
}

start_apiserver() {
  local pki=$STATE/pki
  ensure etcd etcd --data-dir "$STATE/etcd" --unsafe-no-fsync \
    --listen-client-urls "$ETCD_URL" --advertise-client-urls "$ETCD_URL" \
    --listen-peer-urls "$ETCD_PEER_URL" --initial-advertise-peer-urls "$ETCD_PEER_URL" \
    --initial-cluster default="$ETCD_PEER_URL"
  ensure apiserver "$K8S_BIN/kube-apiserver" --etcd-servers="$ETCD_URL" \
    --bind-address="$HOST_IP" --advertise-address="$HOST_IP" --secure-port=6443 \
    --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
    --service-cluster-ip-range="$SERVICE_CIDR" \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local \
    --service-account-key-file="$pki/sa.pub" --service-account-signing-key-file="$pki/sa.key" \
    --kubelet-client-certificate="$pki/kubelet-client.crt" --kubelet-client-key="$pki/kubelet-client.key" \
    --kubelet-certificate-authority="$pki/ca.crt" --kubelet-preferred-address-types=InternalIP \
    --default-not-ready-toleration-seconds="$EVICT_AFTER" --default-unreachable-toleration-seconds="$EVICT_AFTER" \
    --feature-gates=SizeBasedListCostEstimate=false --enable-aggregator-routing=true
}

start_controllers() {
  local pki=$STATE/pki config
  config=$STATE/kube-controller-manager.kubeconfig
  ensure controller-manager "$K8S_BIN/kube-controller-manager" --kubeconfig="$config" \
    --authentication-kubeconfig="$config" --authorization-kubeconfig="$config" --bind-address=127.0.0.1 \
    --service-account-private-key-file="$pki/sa.key" --root-ca-file="$pki/ca.crt" --use-service-account-credentials \
    --cluster-signing-cert-file="$pki/ca.crt" --cluster-signing-key-file="$pki/ca.key" --leader-elect=false \
    --kube-api-qps=500 --kube-api-burst=1000 \
    --node-monitor-period=1s --node-monitor-grace-period="${NODE_GRACE}s" --node-eviction-rate=10 \
    --secondary-node-eviction-rate=10 --large-cluster-size-threshold=0 --unhealthy-zone-threshold=1
  config=$STATE/kube-scheduler.kubeconfig
  ensure scheduler "$K8S_BIN/kube-scheduler" --kubeconfig="$config" --authentication-kubeconfig="$config" \
    --authorization-kubeconfig="$config" --bind-address=127.0.0.1 --leader-elect=false
}

start_dns() {
  render Corefile KUBECONFIG="$STATE/coredns.kubeconfig" >"$STATE/Corefile"
  render coredns.yaml | kubectl apply -f - >/dev/null
  ensure coredns "$EXTRAS_BIN/coredns" -conf "$STATE/Corefile"
}

port_is_free() { [ -z "$(ss --no-header --listening --tcp --numeric "sport = :6443")" ]; }

apiserver() { # stop [SIGNAL] | start
  local pid
  case ${1:-} in
    stop)
      pid=$(pid_of apiserver) || die "the API server is not running"
      kill "-${2:-KILL}" "$pid"
      wait_for 60 "the API server to end" is_gone "$pid"
      # A killed process leaves the process list before its last thread has closed its sockets.
      wait_for 60 "the API server's port to be free" port_is_free ;;
    start)
      start_apiserver
      wait_for 60 "the API server" api_ready ;;
    *) die "apiserver stop [SIGNAL] | start" ;;
  esac
}
