package policy

import "strings"

// The tables of programs are text, one line a rule, so that they can be read. Names are lower case and without folder.

// programs are what running a program means, whatever its words say.
var programs = rules(`
network: curl wget nc ncat netcat socat telnet ssh scp sftp ftp lftp tftp ping dig nslookup host whois traceroute nmap
network: aria2c http https xh lynx w3m links elinks rclone aws gcloud gsutil az kubectl helm terraform tofu pulumi gh glab hub doctl
network: flyctl fly heroku vercel netlify wrangler ngrok cloudflared tailscale mosh websocat grpcurl psql mysql
network: mongosh redis-cli valkey-cli httpie yt-dlp youtube-dl axel skopeo crane oras mail mailx mutt neomutt sendmail msmtp
network: swaks ssmtp s-nail telegram-send signal-cli autossh sshpass ssh-copy-id rsh rlogin dog drill iperf iperf3 stripe
network: docker-compose podman-compose xdg-open open npx bunx uvx dlx pnpx twine semantic-release release-it goreleaser bq bitcoin-cli lncli solana cast firebase surge
publish: mail mailx mutt neomutt sendmail msmtp swaks ssmtp s-nail telegram-send signal-cli wall write slack-cli slackcat
publish: semantic-release release-it goreleaser gh-pages surge np
credential: security pass gopass gpg gpg2 ssh-keygen ssh-add ssh-copy-id sshpass op bw vault secret-tool keyring passwd chpasswd kinit
credential: htpasswd git-credential git-credential-store git-credential-manager aws-vault age sops keytool lpass keepassxc-cli
credential: docker-credential-desktop docker-credential-secretservice docker-credential-pass expect
payment: stripe bitcoin-cli lncli solana
system: sudo doas su pkexec sudoedit systemctl service launchctl apt apt-get aptitude dpkg yum dnf rpm pacman yay zypper
system: apk brew snap flatpak port nix-env nix-channel mount umount fdisk sfdisk parted modprobe insmod rmmod sysctl iptables
system: ip6tables nft ufw firewall-cmd ip ifconfig route useradd userdel usermod groupadd groupdel adduser deluser visudo
system: crontab at batch atrm chroot reboot shutdown halt poweroff init telinit hostnamectl hostname timedatectl update-alternatives
system: ldconfig setcap chattr defaults scutil networksetup csrutil spctl nvram kextload diskutil hdiutil softwareupdate
system: installer swapon swapoff loginctl systemd-run nsenter dpkg-reconfigure update-rc.d update-grub grub-install docker podman
system: docker-compose podman-compose nerdctl lxc lxd virsh machinectl chsh chfn pkill killall skill tmutil pmset dscl nixos-rebuild supervisorctl pm2 rc-service
system: setenforce auditctl gpasswd vipw blkdiscard wipefs cryptsetup mdadm lvremove vgremove losetup kexec authconfig runuser
delete: rm rmdir unlink shred srm trash trash-put rimraf del wipefs blkdiscard lvremove vgremove dropdb git-clean bleachbit
`)

// verbs are what a program means when one of its words is one of these. Where the word stands does not matter: options
// with values make that hard to say, and a verb too many is only stricter.
var verbs = verbRules(`
publish npm pnpm yarn bun lerna changeset: publish unpublish deprecate dist-tag owner access
credential npm pnpm yarn: login logout adduser token profile whoami
network npm pnpm yarn bun: install i ci add update upgrade up audit outdated view info search dlx exec create init x link import dedupe rebuild
system npm pnpm yarn bun: -g --global global --location=global
publish cargo: publish yank owner
credential cargo: login logout
network cargo: install add update fetch search
system cargo: install
publish gh glab hub: create release merge comment close reopen delete edit review upload transfer archive rename lock fork publish push mail sync enable disable run rerun cancel dispatch pull-request approve note
publish glab: api
credential gh glab: auth secret ssh-key gpg-key variable token login
publish docker podman buildah nerdctl helm crane skopeo oras: push --push copy cp
credential docker podman buildah helm crane skopeo oras: login logout
network docker podman buildah nerdctl: pull run build login search create compose
delete docker podman buildah nerdctl: rm rmi prune down kill
publish twine: upload
publish poetry uv flit hatch pdm maturin: publish upload
credential poetry uv pdm: login config
network poetry uv pdm hatch pipenv: add install sync lock update run pip tool
system uv: tool
publish gem: push yank owner
credential gem: signin
network gem bundle bundler composer: install update require fetch add
system gem: install
network pip pip3 pipx conda mamba easy_install: install download search index update create run inject
system pip pip3 pipx conda mamba easy_install: install uninstall inject upgrade remove
publish mvn mvnw: deploy release:perform release:prepare
publish dotnet nuget: push publish
publish vsce ovsx: publish unpublish
publish mix: hex.publish
publish sbt: publish publishsigned release
publish conan: upload
publish firebase vercel netlify wrangler flyctl fly serverless sls cdk eb gcloud sam: deploy publish release --prod
publish heroku: releases:rollback container:release
publish aws: publish send-email send-message publish-version send-raw-email
publish rake: release gem:push
credential aws gcloud az heroku firebase flyctl fly doctl vercel netlify wrangler: configure auth login logout sso sts secretsmanager secrets iam ssm kms token create-access-key get-secret-value keyvault auth:token whoami
payment aws: purchase-reserved-instances-offering purchase-reserved-db-instances-offering purchase-host-reservation register-domain create-savings-plan purchase-offering
payment gcloud: billing
payment heroku: addons:create addons:upgrade ps:type
payment cast: send
system kubectl helm terraform tofu pulumi: apply create replace patch install upgrade up import scale exec run edit label rollout
delete kubectl helm terraform tofu pulumi: delete destroy uninstall drain rm
credential kubectl helm terraform tofu pulumi: secret secrets login config
delete aws gsutil gcloud az rclone: rm delete delete-object delete-bucket terminate-instances purge deletefile rb
network go: get install mod download
system go: install -w env
delete go: clean
network openssl: s_client s_server ocsp s_time
credential openssl: genrsa genpkey rsa pkey pkcs12 req ca passwd enc ecparam dsaparam pkeyutl
delete make gmake ninja cargo mvn mvnw gradle gradlew bazel meson just task rake dotnet npm pnpm yarn: clean distclean mrproper expunge clobber purge
delete npm pnpm yarn bun: prune rm remove uninstall un
system make gmake ninja meson cmake: install uninstall --install
delete rsync: --delete --delete-before --delete-during --delete-delay --delete-after --delete-excluded --remove-source-files --del
delete tar gtar: --remove-files
delete zip: -m --move
delete 7z 7za 7zz: -sdel d
delete find: -delete
delete sqlite3 psql mysql: drop truncate
publish svn hg: commit ci push email phabsend
network svn hg: checkout co update up clone pull incoming outgoing fetch export
delete hg svn: purge strip delete rm revert
system nix: profile
network nix: run develop build shell flake
publish bundle: release
delete fossil jj: clean abandon
publish jj fossil: push sync
network jj fossil: fetch clone
`)

// readers are programs that only read the files they are given, or run them. For any other program a path outside the
// workspace or a protected one counts as written.
var readers = names(`
[[ cat less more head tail ls ll dir tree grep egrep fgrep rg ag ack wc diff cmp comm file stat find fd fdfind sort uniq cut
tr nl od xxd hexdump strings jq yq awk gawk mawk sed echo printf test [ true false : pwd cd pushd popd basename dirname
realpath readlink which type command env printenv date sleep seq expr md5sum sha1sum sha256sum sha512sum shasum cksum sum
base64 base32 du df id whoami groups uname ps top uptime free lsof tac rev fold column paste join tsort bc column pygmentize bat
python python2 python3 node nodejs deno ruby perl php lua java sh bash dash zsh ksh ash fish source . export local declare
go gofmt cargo rustc npm pnpm yarn bun npx pytest jest vitest tsc eslint mocha make gmake cmake ninja mvn gradle pip pip3
git timeout nice nohup time xargs exec eval builtin set unset shift return exit trap wait kill jobs read curl wget ssh
for while if let umask ulimit alias hash shellcheck gcc g++ clang cc ld nm objdump readelf otool ldd zcat zgrep zless man info
tar gtar bsdtar
`)

// talkers are readers whose words are not paths.
var talkers = names(`echo printf true false : sleep exit return export local declare unset eval env sudo timeout nice nohup time command builtin exec xargs sh bash dash zsh`)

// writers are programs that write, move or change every file they are given.
var writers = names(`
touch mkdir tee truncate chmod chown chgrp mv ln mkfifo mknod split csplit patch unzip gzip gunzip bzip2 bunzip2 xz unxz
zstd unzstd sponge rename dd ed ex vi vim nvim nano emacs pico install setfacl xattr chflags setfattr link symlink
fallocate gcore mktemp shuf unrar 7z 7za cpio pax ar ditto mcopy mmv prename visudo sudoedit sqlite3 chcon
`)

// deleters are programs that delete every file they are given.
var deleters = names(`rm rmdir unlink shred srm trash trash-put rimraf del`)

func names(s string) map[string]bool {
	out := map[string]bool{}
	for f := range strings.FieldsSeq(s) {
		out[f] = true
	}
	return out
}

func rules(s string) map[string][]Category {
	out := map[string][]Category{}
	for rule := range strings.Lines(strings.TrimSpace(s)) {
		c, list, _ := strings.Cut(rule, ":")
		for f := range strings.FieldsSeq(list) {
			out[f] = append(out[f], Category(c))
		}
	}
	return out
}

func verbRules(s string) map[string]map[string][]Category {
	out := map[string]map[string][]Category{}
	for rule := range strings.Lines(strings.TrimSpace(s)) {
		head, list, _ := strings.Cut(rule, ": ")
		f := strings.Fields(head)
		for _, program := range f[1:] {
			if out[program] == nil {
				out[program] = map[string][]Category{}
			}
			for verb := range strings.FieldsSeq(list) {
				out[program][verb] = append(out[program][verb], Category(f[0]))
			}
		}
	}
	return out
}
