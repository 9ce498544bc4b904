#!/usr/bin/env bash
# The whole life of netwren in one place: run, test, build, install, bench.
# Installs what is missing and says so first; needs Debian (or apt-get) for that, bash and
# nothing else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# The oldest compiler that builds us: Debian 13's own.
readonly MIN_RUST=1.85
readonly TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
readonly BINARY=$TARGET_DIR/netwren

usage() {
    cat <<'END'
usage: ./netwren.sh COMMAND

  run [-- ARGS]     build the release binary and run it; without ARGS:
                    the whole host on one screen
  test              install what tests need, then everything that must pass
  build             the static release binary, at $CARGO_TARGET_DIR/netwren (target/netwren)
  install [PREFIX]  binary, man pages, shell completions (PREFIX: /usr/local; DESTDIR is honoured)
  bench [ARGS]      measure against ss, netstat, lstf, conntrack and ulogd2 (see: cargo xtask bench --help)
  faults log        let receivers, disks and programs fail; what netwren and ulogd2 lose
  lab NAME          make a trouble on purpose and see what netwren says of it; NAME is: nat
  kernels [NAME …]  run the release binary on distributions' kernels in an emulator (5.10, 6.1, 6.8, 6.12)
  help              this text

What is missing is installed with apt-get (as root or by sudo), each time with a word before.
Rust comes from the distribution (Debian 12: rustc-web and cargo-web) or from a rustup that is
there already. NETWREN_INSTALL_RUSTUP=1 allows to fetch rustup where neither has Rust >= 1.85.
END
}

say() { printf 'netwren.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# --- what must be there -----------------------------------------------------------------

as_root() {
    if [[ $EUID -eq 0 ]]; then "$@"; return; fi
    command -v sudo >/dev/null || die "this needs root and there is no sudo: $*"
    sudo "$@"
}

# need_packages PACKAGE=FILE-OR-COMMAND …: installs the packages whose FILE or COMMAND is missing.
need_packages() {
    local missing=() pair package probe
    for pair in "$@"; do
        package=${pair%%=*} probe=${pair#*=}
        if [[ $probe == /* ]]; then
            compgen -G "$probe" >/dev/null || missing+=("$package")
        elif ! PATH=$PATH:/usr/sbin:/sbin command -v "$probe" >/dev/null; then
            missing+=("$package")
        fi
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0
    command -v apt-get >/dev/null || die "please install (Debian's names): ${missing[*]}"
    apt_install "${missing[@]}"
}

# The longest wait for another apt, in seconds.
readonly APT_WAIT=600

# apt COMMAND …: apt-get as root. While another apt, or dpkg, holds one of their locks it waits: apt-get itself does so
# for dpkg's lock alone (DPkg::Lock::Timeout), not for those of the lists and of the packages that it fetches.
apt() {
    local apt_get=(env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
    local errors status is_told="" end=$((SECONDS + APT_WAIT))
    while true; do
        status=0
        { errors=$(as_root "${apt_get[@]}" "$@" 2>&1 >&3) || status=$?; } 3>&2
        if [[ $status -eq 0 || $errors != *"ould not get lock"* ]] || ((SECONDS >= end)); then break; fi
        [[ -n $is_told ]] || say "waiting for another apt to end: ${errors%%$'\n'*}"
        is_told=yes
        sleep 1
    done
    [[ -z $errors ]] || printf '%s\n' "$errors" >&2
    return "$status"
}

apt_install() {
    say "installing: apt-get install --no-install-recommends $*"
    apt update
    apt install -y --no-install-recommends "$@"
}

# unpack_packages PACKAGE=COMMAND …: for servers that only tests start. Packages whose COMMAND is missing are unpacked
# below target/ with the libraries that are missing, and not installed: no service begins, and servers that exclude one
# another lie side by side. PACKAGE=/FILE is looked for there, too.
unpack_packages() {
    local tools=$TARGET_DIR/tools missing=() pair
    export PATH=$PATH:$tools/usr/sbin
    for pair in "$@"; do
        if [[ $pair == *=/* ]]; then
            compgen -G "${pair#*=}" >/dev/null || compgen -G "$tools${pair#*=}" >/dev/null || missing+=("${pair%%=*}")
        else
            PATH=$PATH:/usr/sbin:/sbin command -v "${pair#*=}" >/dev/null || missing+=("${pair%%=*}")
        fi
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0
    command -v apt-get >/dev/null || die "please install (Debian's names): ${missing[*]}"
    say "unpacking into $tools: ${missing[*]}"
    apt update
    mkdir -p "$tools/packages"
    local package
    apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
        "${missing[@]}" | grep '^[a-z0-9]' | while read -r package; do
        # A package that was removed may have left its configuration, whose state is rc.
        [[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) == ii* ]] && continue
        # One of two alternatives may not exist; the tests of a server say what they lack.
        (cd "$tools/packages" && apt-get -qq download "$package" 2>/dev/null) || true
    done
    for package in "$tools"/packages/*.deb; do dpkg-deb -x "$package" "$tools"; done
    rm -r "$tools/packages"
}

# at_least HAVE WANT: dotted numbers.
at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1) == "$2" ]]; }

# Empty where there is no cargo, or one that does not run.
cargo_version() { { cargo --version 2>/dev/null || true; } | awk '{ print $2 }'; }

need_cargo() {
    [[ -d ${CARGO_HOME:-${HOME:-/root}/.cargo}/bin ]] && PATH=$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin
    if cargo_fits; then return; fi
    if command -v rustup >/dev/null; then
        say "installing the pinned compiler: rustup toolchain install (rust-toolchain.toml)"
        rustup toolchain install >&2 || say "rustup could not install it"
        if cargo_fits; then return; fi
        # Offline, but another compiler may be there and new enough.
        export RUSTUP_TOOLCHAIN=stable
        if cargo_fits; then say "using $(cargo --version) instead of the pinned one"; return; fi
        die "no Rust >= $MIN_RUST; try: rustup toolchain install stable"
    fi
    if apt_install_rust; then return; fi
    offer_rustup
}

# Installs the first of the distribution's compilers that is new enough. Debian 13 has cargo and
# rustc; Debian 12 has a newer pair beside its own (which it replaces), made for building browsers.
apt_install_rust() {
    command -v apt-get >/dev/null || return 1
    # A new system has no lists yet: without them nothing has a candidate.
    apt update
    local suffix candidate
    for suffix in "" -web; do
        candidate=$(apt-cache policy "cargo$suffix" 2>/dev/null | rust_candidate)
        if [[ -n $candidate ]] && at_least "$candidate" "$MIN_RUST"; then
            apt_install "cargo$suffix" "rustc$suffix" || die "apt-get could not install cargo$suffix"
            # The shell may remember where an older cargo was.
            hash -r
            cargo_fits || die "cargo$suffix is installed, but does not run: $(cargo --version 2>&1)"
            return 0
        fi
    done
    return 1
}

# Debian 12 counts cargo apart from rustc (0.66 is Rust 1.65); Debian 13 and cargo-web count together.
rust_candidate() { sed -n 's/^ *Candidate: \([0-9.]*\).*/\1/p'; }

cargo_fits() {
    local have
    have=$(cargo_version)
    [[ -n $have ]] && at_least "$have" "$MIN_RUST"
}

offer_rustup() {
    local have
    have=$(cargo_version)
    say "netwren needs Rust >= $MIN_RUST; found: ${have:-none}, and the distribution has no newer one."
    say "The usual way: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
    local answer=${NETWREN_INSTALL_RUSTUP:-}
    if [[ $answer != 1 && -t 0 ]]; then
        read -r -p "netwren.sh: do that now (into ~/.cargo and ~/.rustup)? [y/N] " answer
        [[ $answer == [yY]* ]] && answer=1
    fi
    [[ $answer == 1 ]] || die "set NETWREN_INSTALL_RUSTUP=1 to let this script do it"
    need_packages curl=curl ca-certificates=/etc/ssl/certs/ca-certificates.crt
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs \
        | sh -s -- -y --profile minimal --default-toolchain none --no-modify-path
    PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
    rustup toolchain install >&2
    cargo_fits || die "rustup is installed, but there is no Rust >= $MIN_RUST yet"
}

need_compiler() {
    need_packages gcc=cc libc6-dev=/usr/lib/*/libc.a ca-certificates=/etc/ssl/certs/ca-certificates.crt
    need_cargo
}

# --- commands ---------------------------------------------------------------------------

build() {
    need_compiler
    # Relocations as a bitmap (DT_RELR, glibc 2.36): 168 in place of 183 page faults of a short run.
    local host flags="-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs ${RUSTFLAGS:-}"
    host=$(rustc -vV | sed -n 's/^host: //p')
    say "building the static release binary (half a minute or two the first time)"
    # The explicit target keeps build scripts and proc-macros out of the static flags.
    RUSTFLAGS=${flags% } cargo build --locked --release --package netwren --bin netwren \
        --features postgres --target "$host" --target-dir "$TARGET_DIR"
    # Moved into place: a running old one keeps its file.
    cp "$TARGET_DIR/$host/release/netwren" "$BINARY.new"
    mv -f "$BINARY.new" "$BINARY"
    say "built $BINARY"
}

run() {
    [[ ${1:-} != -- ]] || shift
    build
    exec "$BINARY" "$@"
}

install_files() {
    local prefix=${DESTDIR:-}${1:-/usr/local}
    build
    local as=()
    mkdir -p "$prefix" 2>/dev/null && [[ -w $prefix ]] || as=(as_root)
    say "installing below $prefix"
    "${as[@]}" install -D -m 755 "$BINARY" "$prefix/bin/netwren"
    local page
    for page in docs/man/*.[17]; do
        [[ -e $page ]] || continue
        "${as[@]}" install -D -m 644 "$page" "$prefix/share/man/man${page##*.}/${page##*/}"
    done
    local from=docs/completions share=$prefix/share
    "${as[@]}" install -D -m 644 $from/netwren.bash "$share/bash-completion/completions/netwren"
    "${as[@]}" install -D -m 644 $from/_netwren "$share/zsh/site-functions/_netwren"
    "${as[@]}" install -D -m 644 $from/netwren.fish "$share/fish/vendor_completions.d/netwren.fish"
    say "installed; no links named ss, netstat, lstf or conntrack are made:" \
        "ln -s netwren $prefix/bin/lstf if you want one"
}

bench() {
    need_packages iproute2=ss net-tools=netstat conntrack=conntrack nftables=nft
    # Without a name everything is measured.
    if [[ " $* " == *" log "* || " $* " != *" "[a-z]* ]]; then need_log_peers; fi
    build
    need_lstf
    NETWREN_BIN=$BINARY cargo xtask bench "$@"
}

faults() {
    case ${1:-} in
        log) ;;
        -h | --help) usage; return ;;
        *) say "faults needs a name: ./netwren.sh faults log"; exit 2 ;;
    esac
    need_packages iproute2=ip nftables=nft
    need_log_peers
    build
    NETWREN_BIN=$BINARY cargo xtask faults "$@"
}

lab() {
    # Nothing is installed or built for a call that cannot run.
    case ${1:-} in
        nat) ;;
        -h | --help) usage; return ;;
        '') say "lab needs a name: ./netwren.sh lab nat"; exit 2 ;;
        *) say "there is no lab called $1; there is: nat"; exit 2 ;;
    esac
    need_packages iproute2=ip nftables=nft apache2-utils=ab nginx-light=nginx
    build
    NETWREN_BIN=$BINARY cargo xtask lab "$@"
}

kernels() {
    need_packages qemu-system-x86=qemu-system-x86_64 busybox-static=busybox cpio=cpio kmod=depmod nftables=nft \
        curl=curl xz-utils=xz zstd=zstd iproute2=devlink dropwatch=dropwatch \
        ca-certificates=/etc/ssl/certs/ca-certificates.crt
    build
    NETWREN_BIN=$BINARY cargo xtask kernels "$@"
}

# What ships log records elsewhere.
need_log_peers() {
    need_packages tcpdump=tcpdump ulogd2-pcap='/usr/lib/*/ulogd/ulogd_output_PCAP.so' \
        ulogd2-json='/usr/lib/*/ulogd/ulogd_output_JSON.so' ulogd2-sqlite3='/usr/lib/*/ulogd/ulogd_output_SQLITE3.so' \
        ulogd2-pgsql='/usr/lib/*/ulogd/ulogd_output_PGSQL.so'
    unpack_packages postgresql='/usr/lib/postgresql/*/bin/initdb' rsyslog=rsyslogd syslog-ng-core=syslog-ng \
        rsyslog-openssl='/usr/lib/*/rsyslog/lmnsd_ossl.so'
}

# What reads the files of packets that we write. Tests say so where it cannot be had.
need_packet_peers() {
    unpack_packages wireshark-common=/usr/bin/capinfos tshark=/usr/bin/tshark \
        || say "tshark could not be unpacked: what it says of our files is not tested"
}

# lstf is in no distribution. Where Go or its module cannot be had, the bench goes on without it and says so.
need_lstf() {
    command -v go >/dev/null || return 0
    PATH=$PATH:$(go env GOPATH)/bin
    if command -v lstf >/dev/null; then return; fi
    say "installing: go install github.com/yuuki/lstf@v0.7.2"
    go install github.com/yuuki/lstf@v0.7.2 >&2 || say "lstf could not be installed; the bench skips it"
}

# step NAME COMMAND…: one line before, the time it took after.
step() {
    local name=$1 start=$SECONDS
    shift
    printf '\n== %s\n' "$name"
    "$@"
    printf '== %s: ok, %d s\n' "$name" $((SECONDS - start))
}

# In a chroot into a plain folder no mount namespace can be made private, which nearly all tests as root need.
root_is_mounted() {
    grep -q '^[^ ]* [^ ]* [^ ]* [^ ]* / ' /proc/self/mountinfo
}

test_all() {
    need_packages iproute2=ss net-tools=netstat conntrack=conntrack nftables=nft git=git procps=ps python3=python3 \
        strace=strace shellcheck=shellcheck openssl=openssl netbase=/etc/protocols systemd=systemd-analyze \
        zsh=zsh fish=fish jq=jq
    need_log_peers
    need_packet_peers
    need_compiler
    local log start=$SECONDS
    log=$(mktemp)
    # shellcheck disable=SC2064  # the name is known now and local later
    trap "rm -f '$log' '$log.build'; stop_background" EXIT
    if [[ $EUID -eq 0 ]] && ! root_is_mounted; then
        say "this chroot is a plain folder, no mount point (mount --bind DIR DIR makes it one, before it is entered):" \
            "root_ tests will be skipped, each with a line that says so"
    elif [[ $EUID -eq 0 ]]; then
        export NETWREN_REQUIRE_ROOT=1
    else
        say "not root: root_ tests will be skipped, each with a line that says so"
    fi
    # A test that hangs ends its process after so long and says where.
    export NETWREN_TEST_LIMIT_S=900
    export NETWREN_REQUIRE_TOOLS=1 CARGO_TERM_PROGRESS_WHEN=never
    step "downloads" cargo fetch --locked
    # For half of its time one processor optimises the whole program at once: the other steps go on meanwhile.
    build >"$log.build" 2>&1 &
    background=$!
    judge_style
    step "shellcheck" shellcheck netwren.sh .ci/run
    step "tidy" cargo xtask tidy
    step "tests" tests_with_all "$log"
    step "static binary" ended_build "$log.build"
    step "size of the static binary" small_enough
    step "tests of the program without BPF" tests_without_bpf "$log"
    step "documentation" documentation
    step "fuzz, 2 s each" cargo xtask fuzz 2
    summary "$log" $((SECONDS - start))
}

# Formatting and lints differ between compilers: only the pinned one may judge.
is_pinned() {
    [[ $(cargo_version) == "$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)" ]]
}

judge_style() {
    if ! is_pinned; then
        say "skipped: fmt, clippy and warnings of rustdoc are judged by the compiler of rust-toolchain.toml," \
            "this is $(cargo_version)"
        return
    fi
    step "fmt" cargo fmt --all --check
    step "clippy" cargo clippy --locked --quiet --workspace --all-targets -- -D warnings
}

documentation() {
    local flags=
    if is_pinned; then flags="-D warnings"; fi
    RUSTDOCFLAGS=$flags cargo doc --locked --quiet --workspace --no-deps
}

# cargo_tests LOG CARGO-WORDS…: each of them, even if one fails; the failure is kept by pipefail.
cargo_tests() {
    local log=$1
    shift
    cargo test --locked --no-run "$@" || return
    cargo test --locked --no-fail-fast "$@" 2>&1 | tee -a "$log"
}

# end_to_end_tests LOG CARGO-WORDS…: those that run the program, two for each processor, as most of their time is
# waiting.
end_to_end_tests() {
    local log=$1
    shift
    RUST_TEST_THREADS=$((2 * $(nproc))) cargo_tests "$log" --package netwren --package netwren-tests --test all "$@"
}

# Every crate with every feature: the same words each time, as others would compile it anew.
readonly CRATES=(--workspace --exclude netwren-tests --features netwren/postgres)

# All tests, with every feature.
tests_with_all() {
    local code=0
    cargo_tests "$1" "${CRATES[@]}" || code=$?
    end_to_end_tests "$1" --features postgres || code=$?
    return "$code"
}

# Everything that runs the program, once more with one that was built without its features. Only the program is built
# for that: the tests are those of before.
tests_without_bpf() {
    local binary=$TARGET_DIR/without-bpf/netwren code=0 file names=()
    cargo build --locked --quiet --package netwren --bin netwren --no-default-features
    install -D "$TARGET_DIR/debug/netwren" "$binary"
    for file in crates/cli/tests/*.rs; do names+=(--test "$(basename "$file" .rs)"); done
    export NETWREN_BIN=$binary
    cargo_tests "$1" "${CRATES[@]}" "${names[@]}" || code=$?
    end_to_end_tests "$1" --features postgres || code=$?
    unset NETWREN_BIN
    return "$code"
}

# The build that runs in the background, empty if none does.
background=

# Waits for it, and shows what it said.
ended_build() {
    local code=0
    wait "$background" || code=$?
    background=
    cat "$1"
    return "$code"
}

# One file to copy to any host: bytes, with every feature. An older compiler makes it somewhat larger.
readonly BINARY_MAX=15500000

small_enough() {
    local size
    size=$(stat -c %s "$BINARY")
    say "$BINARY has $size bytes, $BINARY_MAX are allowed"
    ! is_pinned || ((size <= BINARY_MAX))
}

# Ends it and its cargo, which ends its compilers.
stop_background() {
    if [[ -n $background ]]; then pkill -P "$background" || true; fi
}

# Sums up cargo's own lines, which were printed above.
summary() {
    grep -oE 'skipped: .*' "$1" | sort -u || true
    printf '\n'
    grep -E '^test result: ' "$1" | awk -v seconds="$2" '
        { passed += $4; failed += $6; ignored += $8 }
        END {
            printf "all steps passed in %d s\n", seconds
            printf "%d passed, %d failed, %d skipped\n", passed, failed, ignored
        }'
}

main() {
    local command=${1:-help}
    [[ $# -eq 0 ]] || shift
    case $command in
        run) run "$@" ;;
        test) test_all ;;
        build) build ;;
        install) install_files "$@" ;;
        bench) bench "$@" ;;
        faults) faults "$@" ;;
        lab) lab "$@" ;;
        kernels) kernels "$@" ;;
        help | -h | --help) usage ;;
        *) usage >&2; exit 2 ;;
    esac
}

main "$@"
