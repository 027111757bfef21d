#!/bin/sh
# Checks the Helm chart in packaging/helm/tenuto:
#
#   scripts/helm.sh             lint, and templates with the values of packaging/helm/tries
#   scripts/helm.sh --server    also whether an API server of Kubernetes takes all of it (dry run)
#
# Needed are Go and the network; for --server also etcd, kubectl and openssl. helm and kube-apiserver are
# built once from their Go modules, into the cache directory (3 and 6 minutes on two cores). Nothing
# else is written outside of a temporary directory, and nothing is left running.
set -eu
cd "$(dirname "$0")/.."
chart=packaging/helm/tenuto
helm_version=v4.3.2
kubernetes=36.3
tools=${XDG_CACHE_HOME:-$HOME/.cache}/tenuto-helm
work=$(mktemp -d)
pids=''
# An API server whose etcd has gone does not end by itself; what they have written is thrown away.
trap 'for pid in $pids; do kill -KILL "$pid" 2>/dev/null || true; done; rm -rf "$work"' EXIT
mkdir -p "$tools"

helm=$(command -v helm || true)
if [ -z "$helm" ]; then
    helm=$tools/helm
    [ -x "$helm" ] || GOBIN=$tools go install "helm.sh/helm/v4/cmd/helm@$helm_version"
fi

for values in packaging/helm/tries/*.yaml; do
    name=$(basename "$values" .yaml)
    echo "$name: lint and template"
    "$helm" lint --strict --quiet "$chart" --values "$values"
    "$helm" template films "$chart" --namespace default --values "$values" >"$work/$name.yaml"
done
# Without values it says what is missing.
if "$helm" template films "$chart" >"$work/none" 2>&1; then
    echo "error: the chart makes something without an image" >&2
    exit 1
fi
grep -q 'image.repository' "$work/none"
[ "${1:-}" = --server ] || exit 0

apiserver=$tools/kube-apiserver-1.$kubernetes
if [ ! -x "$apiserver" ]; then
    echo "building kube-apiserver 1.$kubernetes"
    mkdir "$work/build"
    (
        cd "$work/build"
        go mod init check
        go mod edit -require="k8s.io/kubernetes@v1.$kubernetes"
        mod=$(go mod download -json "k8s.io/kubernetes@v1.$kubernetes" |
            sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
        # Its parts are modules of their own, with versions of their own.
        for part in $(sed -n 's|^[[:space:]]*\(k8s.io/[a-z-]*\) v0\.0\.0\( .*\)*$|\1|p' "$mod" | sort -u); do
            go mod edit -replace="$part=$part@v0.$kubernetes"
        done
        GOFLAGS=-mod=mod go build -o "$apiserver" k8s.io/kubernetes/cmd/kube-apiserver
    )
fi

port() { # port: one that was free a moment ago
    perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in(0, INADDR_LOOPBACK));
        print((sockaddr_in(getsockname(S)))[0])'
}
client=$(port) peer=$(port) secure=$(port)
etcd --data-dir "$work/etcd" --listen-client-urls "http://127.0.0.1:$client" \
    --advertise-client-urls "http://127.0.0.1:$client" --listen-peer-urls "http://127.0.0.1:$peer" \
    --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
    --initial-cluster "default=http://127.0.0.1:$peer" >"$work/etcd.log" 2>&1 &
pids="$!"
openssl genrsa -out "$work/account.key" 2048 2>/dev/null
token=$(openssl rand -hex 16)
echo "$token,check,check,system:masters" >"$work/tokens"
"$apiserver" --etcd-servers "http://127.0.0.1:$client" --bind-address 127.0.0.1 \
    --secure-port "$secure" --cert-dir "$work/certs" --token-auth-file "$work/tokens" \
    --authorization-mode RBAC --service-cluster-ip-range 10.0.0.0/24 \
    --service-account-issuer https://localhost --service-account-key-file "$work/account.key" \
    --service-account-signing-key-file "$work/account.key" >"$work/apiserver.log" 2>&1 &
pids="$pids $!"
ask() { # ask WORDS...: kubectl at the API server
    kubectl --kubeconfig /dev/null --server "https://127.0.0.1:$secure" --token "$token" \
        --insecure-skip-tls-verify "$@"
}
for _ in $(seq 120); do
    ask get --raw /readyz >/dev/null 2>&1 && break
    sleep 0.5
done
ask get --raw /readyz >/dev/null || { tail "$work/apiserver.log" >&2; exit 1; }
for values in packaging/helm/tries/*.yaml; do
    name=$(basename "$values" .yaml)
    echo "$name: dry run"
    ask apply --server-side --dry-run=server --namespace default -f "$work/$name.yaml"
done
# A field that is misspelt is refused, so that the check checks.
sed 's/volumeMode: Block/volumeMood: Block/' "$work/full.yaml" >"$work/misspelt.yaml"
if ask apply --server-side --dry-run=server -f "$work/misspelt.yaml" >"$work/said" 2>&1; then
    echo "error: a misspelt field was taken" >&2
    exit 1
fi
grep -q volumeMood "$work/said"
echo "taken by kube-apiserver 1.$kubernetes"
