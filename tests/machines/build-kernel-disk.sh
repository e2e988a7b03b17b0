#!/usr/bin/env bash
# Makes the disk of the machine that boots a kernel of its own (virtual.go): Debian with GRUB and with the oldest
# version of the cloud kernel that the mirror has. The packages of the newest version are in the cache of the disk's apt.
#
# Usage: build-kernel-disk.sh [DIR]     DIR: default <root>/build/machines, where build-machines.sh has made the base
#
# Writes DIR/kernel.disk, and DIR/kernel.versions with the two versions of linux-image-cloud-amd64. If they exist, they are
# made again only when the base, this script or the versions on the mirror have changed. Needs root, qemu-system-x86_64,
# mmdebstrap, sfdisk, mke2fs and the Debian mirror of this host. Takes two minutes on two cores; a boot under QEMU takes
# half of that.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)
out=${1:-$root/build/machines}
tree=$out/kernel-tree
disk=$out/kernel.disk
codename=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")
kernel=linux-image-cloud-amd64

# unattended-upgrades has the hook that writes /run/reboot-required. initramfs-tools needs udev and zstd. kexec-tools has the
# program with which a person loads a kernel, and with which systemd starts it.
packages=(initramfs-tools udev zstd grub-pc unattended-upgrades qemu-guest-agent kexec-tools)
megabytes=3072
first_sector=2048

say() { printf 'machines: %s\n' "$*" >&2; }

# Arguments: suite, default. Prints the URL from which this host's apt gets the suite, or the default if it has none.
mirror_of() {
  local found
  found=$(apt-get indextargets --format '$(CREATED_BY) $(CODENAME) $(REPO_URI)' |
    awk -v c="$1" '$1 == "Packages" && $2 == c {print $3; exit}')
  printf '%s' "${found:-$2}"
}

main=$(mirror_of "$codename" http://deb.debian.org/debian)
security=$(mirror_of "$codename-security" http://deb.debian.org/debian-security)

# Prints a hash of everything that the disk is made from. The versions of the kernel are part of it, so that a new
# version on the mirror causes a new disk.
key() {
  {
    cat "$out/base.key" "${BASH_SOURCE[0]}"
    apt-cache madison "$kernel"
  } | sha256sum | cut -d' ' -f1
}

# Installs the packages in $tree, where make_tree has mounted the file systems that maintainer scripts need.
install_in_tree() {
  local versions older newer
  cp /etc/resolv.conf "$tree/etc/resolv.conf"
  cat >"$tree/etc/apt/sources.list" <<EOF
deb $main $codename main
deb $security $codename-security main
EOF
  export DEBIAN_FRONTEND=noninteractive
  # The machine has no mirror, so it can install only what is in the cache of its apt. Recommended packages are not there.
  echo 'APT::Install-Recommends "false";' >"$tree/etc/apt/apt.conf.d/90no-recommends"
  # The initramfs gets only the drivers of QEMU's devices. They are named here, because mkinitramfs could detect only the
  # devices of this host.
  mkdir -p "$tree/etc/initramfs-tools/conf.d"
  echo 'MODULES=list' >"$tree/etc/initramfs-tools/conf.d/modules"
  in_tree apt-get update -q
  in_tree apt-get install -q -y "${packages[@]}"
  printf 'virtio_pci\nvirtio_blk\n' >>"$tree/etc/initramfs-tools/modules"
  versions=$(in_tree apt-cache madison "$kernel" | awk '{print $3}' | sort -V -u)
  older=$(head -n 1 <<<"$versions")
  newer=$(tail -n 1 <<<"$versions")
  if [[ $older == "$newer" ]]; then
    say "the mirror has only one version of $kernel ($older): the newer one is that of $codename-backports"
    echo "deb $main $codename-backports main" >>"$tree/etc/apt/sources.list"
    in_tree apt-get update -q
    newer=$(in_tree apt-cache madison "$kernel" | awk '{print $3}' | sort -V -u | tail -n 1)
  fi
  [[ -n $newer && $older != "$newer" ]] || {
    say "the mirror has no two versions of $kernel"
    return 1
  }
  in_tree apt-get install -q -y "$kernel=$older" \
    "$(in_tree apt-cache show "$kernel=$older" | sed -n 's/^Depends: *\([^ ,]*\).*/\1/p')"
  in_tree apt-get install -q -y -d "$kernel=$newer"
  printf '%s\n%s\n' "$older" "$newer" >"$out/kernel.versions"
  rm "$tree/etc/resolv.conf"
}

# A directory for temporary files that the caller has set does not exist in the tree.
in_tree() { env -u TMPDIR chroot "$tree" "$@"; }

# Writes the configuration with which the installed tree boots as a machine.
configure_tree() {
  local units=$tree/etc/systemd/system
  cat >"$tree/etc/fstab" <<EOF
/dev/vda1 / ext4 noatime 0 1
/dev/vdb /opt/node ext4 ro,nofail,x-systemd.device-timeout=1s 0 0
EOF
  mkdir -p "$tree/opt/node" "$tree/etc/systemd/network" "$units/multi-user.target.wants"
  # The addresses of QEMU's user-mode network.
  printf '[Match]\nName=en*\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\n' >"$tree/etc/systemd/network/lan.network"
  ln -sf /lib/systemd/system/systemd-networkd.service "$units/multi-user.target.wants/"
  # Shows the kernel's release on the console, above the login prompt.
  printf 'Debian GNU/Linux 12 kernel \\r \\n \\l\n\n' >"$tree/etc/issue"
  mkdir -p "$tree/var/log/journal"
  : >"$tree/etc/machine-id"
  # Disables CPU mitigations, self-tests of the crypto code, audit and AppArmor, and the wait of the boot menu: the tests
  # need none of them, and each takes seconds under emulation.
  cat >"$tree/etc/default/grub" <<'EOF'
GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_TERMINAL=serial
GRUB_CMDLINE_LINUX_DEFAULT=""
GRUB_CMDLINE_LINUX="console=ttyS0 quiet loglevel=5 systemd.show_status=yes mitigations=off cryptomgr.notests audit=0 apparmor=0"
EOF
  # Masks units that need a connection to the internet, or do periodic work that no test needs.
  for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_reap.service unattended-upgrades.service \
    systemd-networkd-wait-online.service systemd-timesyncd.service; do
    ln -sf /dev/null "$units/$unit"
  done
  # Installs GRUB at the first boot, in the machine itself: grub-install needs the disk as a block device.
  cat >"$units/install-grub.service" <<'EOF'
[Unit]
Description=GRUB on the disk
After=local-fs.target
ConditionPathExists=!/boot/grub/grub.cfg
SuccessAction=poweroff
FailureAction=poweroff
[Service]
Type=oneshot
StandardOutput=journal+console
StandardError=journal+console
ExecStart=grub-install /dev/vda
ExecStart=update-grub
ExecStart=echo GRUB is on the disk
EOF
  ln -sf ../install-grub.service "$units/multi-user.target.wants/"
}

# Fails if a step fails, also where the shell ignores a failing command because the caller tests the result.
fill_tree() {
  rm -rf "$tree" || return
  mkdir -p "$out/tmp"
  export -f install_in_tree in_tree say
  export tree out main security codename kernel
  # The tree is a copy of the base. The mounts that the packages need are made in a mount namespace of their own.
  cp -a "$out/base" "$tree" || return
  local words="${packages[*]}"
  unshare --mount --propagation private bash -euo pipefail -c '
    read -r -a packages <<<"$1"
    mount -t proc proc "$tree/proc"
    mount -t sysfs -o ro sysfs "$tree/sys"
    mount --bind /dev "$tree/dev"
    mount -t tmpfs tmpfs "$tree/run"
    mount -t tmpfs tmpfs "$tree/tmp"
    printf "#!/bin/sh\nexit 101\n" >"$tree/usr/sbin/policy-rc.d"
    chmod +x "$tree/usr/sbin/policy-rc.d"
    install_in_tree
    rm "$tree/usr/sbin/policy-rc.d"
  ' bash "$words"
}

make_disk() {
  local new=$disk.new release
  rm -f "$new"
  truncate -s "${megabytes}M" "$new"
  echo "$first_sector,,L,*" | sfdisk -q --label dos "$new"
  mke2fs -q -t ext4 -d "$tree" -E "offset=$((first_sector * 512))" "$new" $((megabytes * 1024 - first_sector / 2))k
  release=$(basename "$tree"/boot/vmlinuz-*)
  release=${release#vmlinuz-}
  timeout 900 qemu-system-x86_64 -M q35 -accel tcg,thread=multi -cpu max -smp 2 -m 1024 -nodefaults -display none \
    -serial "file:$out/kernel.console" -no-reboot -nic none -drive "file=$new,if=virtio,format=raw,cache=unsafe" \
    -kernel "$tree/boot/vmlinuz-$release" -initrd "$tree/boot/initrd.img-$release" \
    -append 'root=/dev/vda1 rw console=ttyS0 mitigations=off cryptomgr.notests' </dev/null >&2
  grep -q 'GRUB is on the disk' "$out/kernel.console" || {
    tail -n 40 "$out/kernel.console" >&2
    return 1
  }
  mv "$new" "$disk"
}

now=$(key)
if [[ -e $disk && $(cat "$out/kernel.key" 2>/dev/null) == "$now" ]]; then exit 0; fi
say "making the disk of the machine with a kernel of its own"
rm -f "$out/kernel.key"
fill_tree >"$out/kernel.log" 2>&1 || {
  tail -n 30 "$out/kernel.log" >&2
  exit 1
}
configure_tree
make_disk
rm -rf "$tree"
printf '%s\n' "$now" >"$out/kernel.key"
say "the disk is $disk, with the kernel packages $(paste -sd ' ' "$out/kernel.versions")"
