#!/bin/sh
# Prepares a bare Debian machine (python3, make, git). Called by the Makefile:
#
#   scripts/setup.sh venv DIR GROUP   a virtual environment with keywright[all] and a dependency group
#   scripts/setup.sh redis            Debian's redis-server, installed but not started
set -eu

policy=/usr/sbin/policy-rc.d

say() { printf 'setup: %s\n' "$*" >&2; }

is_root() { [ "$(id -u)" -eq 0 ]; }

apt_install() {
    say "installing $* with apt"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends "$@" >/dev/null
}

# Debian ships ensurepip, without which venv cannot work, in a package of its own.
ensure_venv_module() {
    if python3 -m ensurepip --version >/dev/null 2>&1; then return; fi
    if ! is_root; then
        say "python3 cannot create virtual environments: install the package python3-venv, then try again"
        exit 1
    fi
    apt_install python3-venv
}

make_venv() {
    dir=$1 group=$2
    if [ ! -x "$dir/bin/python" ]; then
        ensure_venv_module
        say "creating $dir"
        python3 -m venv "$dir"
    fi
    say "installing keywright[all] and the group '$group' into $dir"
    # --group needs pip 25.1; Debian 12 has 23.0.
    "$dir/bin/python" -m pip install -qq --disable-pip-version-check --upgrade 'pip>=25.1'
    "$dir/bin/python" -m pip install -qq --disable-pip-version-check --group "$group" --editable '.[all]'
}

# Tests start their own servers; the one Debian would start on port 6379 is in the way.
# A policy-rc.d that is already there belongs to the machine's owner and stays.
install_redis() {
    if command -v redis-server >/dev/null; then return; fi
    if ! is_root; then
        say "redis-server is missing and installing it needs root: tests that need a server will not run"
        return
    fi
    if [ ! -e "$policy" ]; then
        trap 'rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod +x "$policy"
    fi
    apt_install redis-server
}

cd "$(dirname "$0")/.."
case "${1-}" in
    venv) make_venv "$2" "$3" ;;
    redis) install_redis ;;
    *) say "usage: $0 venv DIR GROUP | redis"; exit 2 ;;
esac
