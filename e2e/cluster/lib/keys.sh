# shellcheck shell=bash
# One certificate authority, one certificate per component, kubeconfigs. Kept between clusters. Sourced, never run.

EC=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)

certificate() { # NAME SUBJECT [SUBJECT_ALT_NAMES]
  local file=$STATE/pki/$1 extensions="extendedKeyUsage=serverAuth,clientAuth"
  [ ! -f "$file.crt" ] || return 0
  [ -z "${3:-}" ] || extensions+=$'\n'"subjectAltName=$3"
  openssl req "${EC[@]}" -subj "$2" -keyout "$file.key" -out "$file.csr" 2>/dev/null
  openssl x509 -req -in "$file.csr" -CA "$STATE/pki/ca.crt" -CAkey "$STATE/pki/ca.key" -CAcreateserial -days 3650 \
    -extfile <(echo "$extensions") -out "$file.crt" 2>/dev/null
}

kubeconfig() { # CERTIFICATE FILE
  local pki=$STATE/pki
  render kubeconfig.yaml API_URL="$API_URL" CA="$(base64 -w0 "$pki/ca.crt")" \
    CERTIFICATE="$(base64 -w0 "$pki/$1.crt")" KEY="$(base64 -w0 "$pki/$1.key")" >"$2"
}

make_keys() {
  local pki=$STATE/pki service=DNS:kubernetes.default.svc name
  mkdir -p "$pki"
  [ -f "$pki/ca.crt" ] ||
    openssl req -x509 "${EC[@]}" -days 3650 -subj /CN=stoker-e2e -keyout "$pki/ca.key" -out "$pki/ca.crt" 2>/dev/null
  [ -f "$pki/sa.key" ] || openssl ecparam -genkey -name prime256v1 -noout -out "$pki/sa.key"
  [ -f "$pki/sa.pub" ] || openssl ec -in "$pki/sa.key" -pubout -out "$pki/sa.pub" 2>/dev/null
  certificate apiserver /CN=kube-apiserver "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,$service,\
$service.cluster.local,IP:$HOST_IP,IP:$SERVICE_API_IP"
  certificate admin /O=system:masters/CN=admin
  certificate kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
  for name in kube-controller-manager kube-scheduler kube-proxy coredns; do certificate $name /CN=system:$name; done
  for name in admin kube-controller-manager kube-scheduler coredns; do kubeconfig $name "$STATE/$name.kubeconfig"; done
}
