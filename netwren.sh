#!/usr/bin/env bash
# All tasks of netwren's development in one script: run, test, build, install, bench.
# It only needs bash. On Debian (or another system with apt-get) it installs missing packages, and prints a message
# before it does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# The oldest supported compiler, which is Debian 13's.
readonly MIN_RUST=1.85
readonly TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
readonly BINARY=$TARGET_DIR/netwren

usage() {
    cat <<'END'
usage: ./netwren.sh COMMAND

  run [-- ARGS]      build the release binary and run it; without ARGS it
                     shows the whole host on one screen
  test [ARCH]        install what the tests need, then run all checks and tests;
                     for another processor (aarch64) only the tests of text
                     and parsers, under qemu-user
  build [ARCH]       build the static release binary: target/netwren, or for
                     another processor (x86_64, aarch64): target/netwren-ARCH
  package FORMAT …   build, and write packages to target/packages;
                     FORMAT: deb, rpm, tar, oci; --arch ARCH
  release VERSION …  build, and write all files of a release to
                     target/release-VERSION: packages, digests, apt and rpm
                     repositories; docs/releasing.md lists the options
  install [PREFIX]   install binary, man pages and shell completions
                     (PREFIX: /usr/local; DESTDIR is honoured)
  bench [ARGS]       compare with ss, netstat, lstf, conntrack and ulogd2
                     (see: cargo xtask bench --help)
  faults log         make receivers, disks and programs fail, and show how much
                     netwren and ulogd2 lose
  lab NAME           reproduce a problem and show netwren's output; NAME: nat
  kernels [NAME …]   run the release binary on distributions' kernels in an
                     emulator: 5.10, 6.1, 6.8, 6.12, and on aarch64 6.1-arm64,
                     6.12-arm64, 6.12-arm64-16k
  help               print this text

CARGO_TARGET_DIR replaces target/. Missing packages are installed with apt-get
(as root or with sudo); a message is printed before. Rust comes from the
distribution (Debian 12: rustc-web and cargo-web) or from an installed rustup.
NETWREN_INSTALL_RUSTUP=1 allows the script to install rustup if neither has
Rust >= 1.85.
END
}

say() { printf 'netwren.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# --- prerequisites ----------------------------------------------------------------------

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

# Maximum wait for another apt, in seconds.
readonly APT_WAIT=600

# apt COMMAND …: runs apt-get as root. Waits while another apt or dpkg holds a lock. apt-get itself only waits for
# dpkg's lock (DPkg::Lock::Timeout), not for the locks on the package lists and on downloaded packages.
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

# unpack_packages PACKAGE=COMMAND …: for servers that only tests start. Packages whose COMMAND is missing are not
# installed but unpacked below target/, together with missing libraries. So no service is started, and servers that
# conflict as packages can be used together. PACKAGE=/FILE looks for a file instead, also below target/.
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
        # A removed package whose configuration files remain has the state rc.
        [[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) == ii* ]] && continue
        # One of two alternatives may not exist. If a server's package is missing, its tests report it.
        (cd "$tools/packages" && apt-get -qq download "$package" 2>/dev/null) || true
    done
    for package in "$tools"/packages/*.deb; do dpkg-deb -x "$package" "$tools"; done
    rm -r "$tools/packages"
}

# at_least HAVE WANT: compares dotted version numbers.
at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1) == "$2" ]]; }

# Prints cargo's version; nothing if cargo is missing or does not run.
cargo_version() { { cargo --version 2>/dev/null || true; } | awk '{ print $2 }'; }

need_cargo() {
    [[ -d ${CARGO_HOME:-${HOME:-/root}/.cargo}/bin ]] && PATH=$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin
    if cargo_fits; then return; fi
    if command -v rustup >/dev/null; then
        say "installing the pinned compiler: rustup toolchain install (rust-toolchain.toml)"
        rustup toolchain install >&2 || say "rustup could not install it"
        if cargo_fits; then return; fi
        # Without network access, another installed compiler may be new enough.
        export RUSTUP_TOOLCHAIN=stable
        if cargo_fits; then say "using $(cargo --version) instead of the pinned one"; return; fi
        die "no Rust >= $MIN_RUST; try: rustup toolchain install stable"
    fi
    if apt_install_rust; then return; fi
    offer_rustup
}

# Installs the first of the distribution's compilers that is new enough. Debian 13 has cargo and rustc. Debian 12 also
# has a newer pair for building browsers, which replaces its usual pair.
apt_install_rust() {
    command -v apt-get >/dev/null || return 1
    # A new system has no package lists yet, so no package would have a candidate.
    apt update
    local suffix candidate
    for suffix in "" -web; do
        candidate=$(apt-cache policy "cargo$suffix" 2>/dev/null | rust_candidate)
        if [[ -n $candidate ]] && at_least "$candidate" "$MIN_RUST"; then
            apt_install "cargo$suffix" "rustc$suffix" || die "apt-get could not install cargo$suffix"
            # The shell may have cached the path of an older cargo.
            hash -r
            cargo_fits || die "cargo$suffix is installed, but does not run: $(cargo --version 2>&1)"
            return 0
        fi
    done
    return 1
}

# In Debian 12, cargo has its own version numbers (0.66 belongs to Rust 1.65). In Debian 13 and for cargo-web they equal
# rustc's.
rust_candidate() { sed -n 's/^ *Candidate: \([0-9.]*\).*/\1/p'; }

cargo_fits() {
    local have
    have=$(cargo_version)
    [[ -n $have ]] && at_least "$have" "$MIN_RUST"
}

offer_rustup() {
    local have
    have=$(cargo_version)
    say "netwren needs Rust >= $MIN_RUST; found: ${have:-none}, and the distribution does not have a newer version."
    say "The usual way to install it: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
    local answer=${NETWREN_INSTALL_RUSTUP:-}
    if [[ $answer != 1 && -t 0 ]]; then
        read -r -p "netwren.sh: run this command now (installs into ~/.cargo and ~/.rustup)? [y/N] " answer
        [[ $answer == [yY]* ]] && answer=1
    fi
    [[ $answer == 1 ]] || die "set NETWREN_INSTALL_RUSTUP=1 to let this script run it"
    need_packages curl=curl ca-certificates=/etc/ssl/certs/ca-certificates.crt
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs \
        | sh -s -- -y --profile minimal --default-toolchain none --no-modify-path
    PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
    rustup toolchain install >&2
    cargo_fits || die "rustup is installed, but Rust >= $MIN_RUST is not"
}

need_compiler() {
    need_packages gcc=cc libc6-dev=/usr/lib/*/libc.a ca-certificates=/etc/ssl/certs/ca-certificates.crt
    need_cargo
}

# Installs what builds the program for another processor: Debian's cross compiler, and Rust's standard library for it.
need_cross_compiler() {
    local arch=$1 target=$2 debian
    case $arch in
        aarch64) debian=arm64 ;;
        x86_64) debian=amd64 ;;
        *) die "no processor $arch; those known are: x86_64, aarch64" ;;
    esac
    need_packages "gcc-${arch//_/-}-linux-gnu=$arch-linux-gnu-gcc" \
        "libc6-dev-$debian-cross=/usr/$arch-linux-gnu/lib/libc.a"
    local name=${target//-/_}
    export "CC_$name=$arch-linux-gnu-gcc" "CARGO_TARGET_${name^^}_LINKER=$arch-linux-gnu-gcc"
    [[ ! -d $(rustc --print sysroot)/lib/rustlib/$target/lib ]] || return 0
    if command -v rustup >/dev/null; then
        say "installing Rust's standard library: rustup target add $target"
        rustup target add "$target" >&2
        return
    fi
    # The library must have exactly the compiler's version.
    local package=libstd-rust-dev
    [[ $(dpkg-query -W -f '${Package}' rustc-web 2>/dev/null) != rustc-web ]] || package=libstd-rust-web-dev
    say "adding the packages of $debian to this system: dpkg --add-architecture $debian"
    as_root dpkg --add-architecture "$debian"
    apt_install "$package:$debian"
}

# --- commands ---------------------------------------------------------------------------

# The path of the program for a processor; without a name, for this host's.
binary_of() {
    if [[ -z ${1:-} || $1 == "$(uname -m)" ]]; then echo "$BINARY"; else echo "$BINARY-$1"; fi
}

# build [ARCH]
build() {
    need_compiler
    # Stores relocations as a bitmap (DT_RELR, glibc 2.36): a short run causes 168 page faults instead of 183.
    local target flags="-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs ${RUSTFLAGS:-}"
    local binary
    binary=$(binary_of "${1:-}")
    target=$(rustc -vV | sed -n 's/^host: //p')
    if [[ $binary != "$BINARY" ]]; then
        target=$1-unknown-linux-gnu
        need_cross_compiler "$1" "$target"
    fi
    say "building the static release binary (1 to 5 min the first time)"
    # With an explicit target, the static flags do not apply to build scripts and proc-macros.
    RUSTFLAGS=${flags% } cargo build --locked --release --package netwren --bin netwren \
        --features all-receivers --target "$target" --target-dir "$TARGET_DIR"
    # mv replaces the file instead of overwriting it, so an old binary can still be running.
    cp "$TARGET_DIR/$target/release/netwren" "$binary.new"
    mv -f "$binary.new" "$binary"
    say "built $binary"
}

run() {
    [[ ${1:-} != -- ]] || shift
    say "builds netwren and runs it once: 3 to 5 minutes the first time, then a second; nothing is installed but" \
        "missing packages"
    build
    local code=0
    "$BINARY" "$@" || code=$?
    say "the program is $BINARY; to install it: ./netwren.sh install"
    return "$code"
}

install_files() {
    local prefix=${DESTDIR:-}${1:-/usr/local}
    build
    local as=()
    mkdir -p "$prefix" 2>/dev/null && [[ -w $prefix ]] || as=(as_root)
    say "installing below $prefix"
    local mode source path
    # The same list of files as in the packages.
    cargo xtask package list --binary "$BINARY" | while read -r mode source path; do
        "${as[@]}" install -D -m "$mode" "$source" "$prefix/$path"
    done
    say "installed, without links named ss, netstat, lstf or conntrack." \
        "To make one: ln -s netwren $prefix/bin/lstf"
}

package_files() {
    if [[ " $* " == *" rpm "* ]]; then need_packages rpm=rpmbuild; fi
    local arch="" word previous=""
    for word in "$@"; do
        case $previous:$word in
            --arch:*) arch=$word ;;
            *:--arch=*) arch=${word#--arch=} ;;
        esac
        previous=$word
    done
    build "$arch"
    cargo xtask package --binary "$(binary_of "$arch")" --into "$TARGET_DIR/packages" "$@"
}

# release_files VERSION OPTIONS…: the checks run first, because the build takes minutes.
release_files() {
    case ${1:-} in
        [0-9]*) ;;
        -h | --help) usage; return ;;
        *) say "release needs a version: ./netwren.sh release 0.1.0"; exit 2 ;;
    esac
    need_packages git=git rpm=rpmbuild createrepo-c=createrepo_c gnupg=gpg
    need_compiler
    cargo fetch --locked --quiet
    cargo xtask release "$@" --check
    if [[ " $* " == *" --check "* ]]; then return; fi
    local own=() arch
    # A program that is already built can be given.
    for arch in ${NETWREN_RELEASE_ARCHS:-x86_64 aarch64}; do
        if [[ " $* " != *" --binary $arch="* ]]; then
            build "$arch"
            own+=(--binary "$arch=$(binary_of "$arch")")
        fi
    done
    local into=()
    if [[ " $* " != *" --into"* ]]; then into=(--into "$TARGET_DIR/release-$1"); fi
    cargo xtask release "$@" "${own[@]}" "${into[@]}"
}

bench() {
    need_packages iproute2=ss net-tools=netstat conntrack=conntrack nftables=nft
    # If no benchmark is named, all of them run.
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
    # Checks the arguments before anything is installed or built.
    case ${1:-} in
        nat) ;;
        -h | --help) usage; return ;;
        '') say "lab needs a name: ./netwren.sh lab nat"; exit 2 ;;
        *) say "there is no lab $1; the only lab is: nat"; exit 2 ;;
    esac
    need_packages iproute2=ip nftables=nft apache2-utils=ab nginx-light=nginx
    build
    NETWREN_BIN=$BINARY cargo xtask lab "$@"
}

kernels() {
    need_packages qemu-system-x86=qemu-system-x86_64 busybox-static=busybox cpio=cpio kmod=depmod nftables=nft \
        curl=curl xz-utils=xz zstd=zstd iproute2=devlink dropwatch=dropwatch qemu-system-arm=qemu-system-aarch64 \
        ca-certificates=/etc/ssl/certs/ca-certificates.crt
    local name of_arm="" of_x86=""
    for name in "$@"; do
        if [[ $name == *-arm64* ]]; then of_arm=yes; else of_x86=yes; fi
    done
    # If no kernel is named, all of them run.
    if [[ $# -eq 0 || -n $of_x86 ]]; then build x86_64; fi
    if [[ $# -eq 0 || -n $of_arm ]]; then build aarch64; fi
    cargo xtask kernels "$@"
}

# The programs that ship log records, for comparison.
need_log_peers() {
    need_packages tcpdump=tcpdump ulogd2-pcap='/usr/lib/*/ulogd/ulogd_output_PCAP.so' \
        ulogd2-json='/usr/lib/*/ulogd/ulogd_output_JSON.so' ulogd2-sqlite3='/usr/lib/*/ulogd/ulogd_output_SQLITE3.so' \
        ulogd2-pgsql='/usr/lib/*/ulogd/ulogd_output_PGSQL.so'
    unpack_packages postgresql='/usr/lib/postgresql/*/bin/initdb' rsyslog=rsyslogd syslog-ng-core=syslog-ng \
        rsyslog-openssl='/usr/lib/*/rsyslog/lmnsd_ossl.so'
}

# The programs that read our packet files and flows. If they are not available, the tests report it.
need_packet_peers() {
    unpack_packages nfdump=/usr/bin/nfcapd
    unpack_packages wireshark-common=/usr/bin/capinfos tshark=/usr/bin/tshark \
        || say "tshark could not be unpacked: the tests cannot check that it reads our files"
}

# The programs that check packaging/kubernetes and packaging/ansible, and OpenTelemetry's own definitions. Debian lacks
# them or has old versions, so they get a Python environment below target/. If they cannot be downloaded, their tests
# are skipped.
need_deployment_judges() {
    local tools=$TARGET_DIR/tools/python
    local judges=(kubernetes-validate==1.37.0 ansible-lint==26.10.1 ansible-core==2.19.14 opentelemetry-proto==1.45.2)
    if [[ $(cat "$tools/installed" 2>/dev/null) == "${judges[*]}" ]]; then return; fi
    if ! python3 -c 'import ensurepip' 2>/dev/null; then need_packages python3-venv=/no/such/file; fi
    say "installing into $tools: ${judges[*]}"
    if python3 -m venv --clear "$tools" \
        && "$tools/bin/pip" install --quiet --no-compile --retries 2 --disable-pip-version-check "${judges[@]}"; then
        printf '%s\n' "${judges[*]}" >"$tools/installed"
        return
    fi
    say "ATTENTION: these programs could not be installed: their tests will be skipped, each with a message"
    export NETWREN_WITHOUT_PYTHON_TOOLS=1
}

# A Kafka broker for tests, of which no distribution has a package: its jars, below target/. If they cannot be
# downloaded, its tests are skipped.
need_kafka() {
    local version=4.4.0
    local jars=$TARGET_DIR/tools/kafka-$version
    need_packages default-jre-headless=java kcat=kcat
    [[ ! -d $jars ]] || return 0
    need_packages maven=mvn
    say "downloading the jars of Kafka $version (43 MB) into $jars"
    local work
    work=$(mktemp -d)
    # kafka-tools-api of this version was not published, and a broker does not need it.
    cat >"$work/pom.xml" <<END
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>netwren</groupId><artifactId>broker</artifactId><version>1</version>
<dependencies><dependency>
<groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version>
<exclusions><exclusion>
<groupId>org.apache.kafka</groupId><artifactId>kafka-tools-api</artifactId>
</exclusion></exclusions>
</dependency></dependencies></project>
END
    if mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" >&2; then
        mkdir -p "$TARGET_DIR/tools"
        mv "$work/jars" "$jars"
    else
        say "ATTENTION: Kafka could not be downloaded: its tests will be skipped, each with a message"
        export NETWREN_WITHOUT_KAFKA=1
    fi
    rm -r "$work"
}

# ClickHouse's engine for tests, of which no distribution has a recent package: a Python package below target/. If it
# cannot be downloaded, or the disk has no room for it, its tests are skipped.
need_clickhouse() {
    local version=26.9.0
    local engine=$TARGET_DIR/tools/chdb-core-$version
    [[ ! -d $engine ]] || return 0
    local pip=$TARGET_DIR/tools/python/bin/pip
    mkdir -p "$TARGET_DIR/tools"
    say "downloading ClickHouse's engine (180 MB; 540 MB in $engine)"
    local free
    free=$(df --output=avail -k "$TARGET_DIR/tools" | tail -n1)
    if ((free > 2000000)) && "$pip" install --quiet --no-deps --no-compile --retries 2 \
        --disable-pip-version-check --target "$engine.new" "chdb-core==$version" >&2; then
        mv "$engine.new" "$engine"
        return
    fi
    rm -rf "$engine.new"
    say "ATTENTION: ClickHouse's engine could not be downloaded: its tests will be skipped, each with a message"
    export NETWREN_WITHOUT_CLICKHOUSE=1
}

# No distribution contains lstf. If Go or the module is not available, bench skips lstf and says so.
need_lstf() {
    command -v go >/dev/null || return 0
    PATH=$PATH:$(go env GOPATH)/bin
    if command -v lstf >/dev/null; then return; fi
    say "installing: go install github.com/yuuki/lstf@v0.7.2"
    go install github.com/yuuki/lstf@v0.7.2 >&2 || say "lstf could not be installed; the bench skips it"
}

# step NAME COMMAND…: prints the name, runs the command, and prints how long it took.
step() {
    local name=$1 start=$SECONDS
    shift
    printf '\n== %s\n' "$name"
    "$@"
    printf '== %s: ok, %d s\n' "$name" $((SECONDS - start))
}

# In a chroot whose root is a plain folder, mounts cannot be made private, which nearly all tests as root need.
root_is_mounted() {
    grep -q '^[^ ]* [^ ]* [^ ]* [^ ]* / ' /proc/self/mountinfo
}

test_all() {
    need_packages iproute2=ss net-tools=netstat conntrack=conntrack nftables=nft git=git procps=ps python3=python3 \
        strace=strace shellcheck=shellcheck openssl=openssl netbase=/etc/protocols systemd=systemd-analyze \
        zsh=zsh fish=fish jq=jq rpm=rpmbuild lintian=lintian skopeo=skopeo umoci=umoci \
        gnupg=gpg createrepo-c=createrepo_c dnf=dnf
    need_log_peers
    need_packet_peers
    need_deployment_judges
    need_kafka
    need_clickhouse
    need_compiler
    local log start=$SECONDS
    log=$(mktemp)
    # shellcheck disable=SC2064  # the name is known now and local later
    trap "rm -f '$log' '$log.build'; stop_background" EXIT
    if [[ $EUID -eq 0 ]] && ! root_is_mounted; then
        say "the root of this chroot is not a mount point (before entering it, run: mount --bind DIR DIR):" \
            "root_ tests will be skipped, each with a message"
    elif [[ $EUID -eq 0 ]]; then
        export NETWREN_REQUIRE_ROOT=1
    else
        say "not root: root_ tests will be skipped, each with a message"
    fi
    # If a test runs longer than this, its process prints where it hangs and ends.
    export NETWREN_TEST_LIMIT_S=900
    export NETWREN_REQUIRE_TOOLS=1 CARGO_TERM_PROGRESS_WHEN=never
    step "downloads" cargo fetch --locked
    # For half of its time this build uses only one processor (link-time optimisation), so it runs in the background.
    build >"$log.build" 2>&1 &
    background=$!
    judge_style
    step "shellcheck" shellcheck netwren.sh .ci/run
    step "build for the tests" build_for_tests
    step "tidy" xtask tidy
    step "static binary" ended_build "$log.build"
    step "size of the static binary" small_enough
    step "tests" cargo_tests "$log" "$BINARY"
    step "tests of the program without BPF" tests_without_bpf "$log"
    step "documentation" documentation
    step "fuzz, 2 s each" xtask fuzz 2
    summary "$log" $((SECONDS - start))
}

# Formatting and lints differ between compilers, so they are only checked with the pinned compiler.
is_pinned() {
    [[ $(cargo_version) == "$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)" ]]
}

judge_style() {
    if ! is_pinned; then
        say "skipped: fmt, clippy and warnings of rustdoc need the compiler of rust-toolchain.toml," \
            "but this is $(cargo_version)"
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

# All crates with all features. The arguments are always the same, because cargo compiles a crate again if another
# selection of packages changes its features.
readonly WORKSPACE=(--workspace --features netwren/all-receivers)

# Builds what the tests need. Naming a test makes cargo choose the features of the tests.
build_for_tests() { cargo build --locked "${WORKSPACE[@]}" --bin xtask --test all; }

# The chores that build_for_tests has built; `cargo xtask` would build them again with other features.
xtask() { "$TARGET_DIR/debug/xtask" "$@"; }

# cargo_tests LOG BINARY CARGO-ARGUMENTS…: runs all tests with this program, even if one fails; because of pipefail
# the failure is returned. Two run at a time per processor, because they mostly wait.
cargo_tests() {
    local log=$1 binary=$2
    shift 2
    cargo test --locked --no-run "${WORKSPACE[@]}" "$@" || return
    NETWREN_BIN=$binary RUST_TEST_THREADS=$((2 * $(nproc))) \
        cargo test --locked --no-fail-fast "${WORKSPACE[@]}" "$@" 2>&1 | tee -a "$log"
}

# Repeats all tests that start the program, with a debug build without optional features, which also finds numbers that
# overflow. Only the program is rebuilt; the tests are the same binaries as before.
tests_without_bpf() {
    local binary=$TARGET_DIR/without-bpf/netwren file names=(--test all)
    cargo build --locked --quiet --package netwren --bin netwren --no-default-features
    install -D "$TARGET_DIR/debug/netwren" "$binary"
    for file in crates/cli/tests/*.rs; do names+=(--test "$(basename "$file" .rs)"); done
    cargo_tests "$1" "$binary" "${names[@]}"
}

# test_emulated ARCH: runs the unit tests of another processor. qemu-user emulates its instructions, but system calls go
# to this kernel, so tests of kernel interfaces are left out; `kernels` runs those. A success is noted
# in docs/platforms.json.
test_emulated() {
    local arch=$1 target=$1-unknown-linux-gnu
    need_compiler
    need_cross_compiler "$arch" "$target"
    need_packages "qemu-user=qemu-$arch"
    local name=${target//-/_}
    export "CARGO_TARGET_${name^^}_RUNNER=qemu-$arch -L /usr/$arch-linux-gnu"
    # Tests of these crates call the kernel in ways that qemu-user does not translate.
    local crate left_out=()
    for crate in bpf export faces host lookups netlink packet_files probes shipping sys testkit xtask netwren-tests; do
        left_out+=(--exclude "$crate")
    done
    cargo test --locked --target "$target" --workspace "${left_out[@]}" --lib -- --skip root_
    cargo xtask platform "qemu-user $arch" "./netwren.sh test $arch"
    cargo xtask gen
}

# Process id of the background build; empty if there is none.
background=

# Waits for the background build, and prints its output.
ended_build() {
    local code=0
    wait "$background" || code=$?
    background=
    cat "$1"
    return "$code"
}

# Maximum size in bytes of the static binary with all features, because users copy it to hosts. Older compilers make it
# somewhat larger.
readonly BINARY_MAX=18000000
readonly POINTERS_MAX=500000

small_enough() {
    local size pointers
    size=$(stat -c %s "$BINARY")
    pointers=$(readelf -SW "$BINARY" | sed -n 's/.* \.data\.rel\.ro *PROGBITS *[^ ]* [^ ]* \([0-9a-f]*\) .*/\1/p')
    pointers=$((16#$pointers))
    say "$BINARY has $size bytes; the maximum is $BINARY_MAX"
    say "$pointers of them are tables with pointers, which each start relocates; the maximum is $POINTERS_MAX"
    ! is_pinned || ((size <= BINARY_MAX && pointers <= POINTERS_MAX))
}

# Ends cargo in the background build; cargo then ends its compilers.
stop_background() {
    if [[ -n $background ]]; then pkill -P "$background" || true; fi
}

# Adds up the results in cargo's output, which was printed above.
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
        test)
            case ${1:-} in
                '' | "$(uname -m)") test_all ;;
                -h | --help) usage ;;
                *) test_emulated "$1" ;;
            esac
            ;;
        build) build "$@" ;;
        package) package_files "$@" ;;
        release) release_files "$@" ;;
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
