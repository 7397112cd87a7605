package policy

import (
	"slices"
	"strings"
)

// wrapper is how a program that runs another program reads its words: the options that take a value of their own, the
// options that do not, and how many words stand before the command.
type wrapper struct {
	valued, plain string
	operands      int
}

// wrappers are the programs whose words end in another command. An option that stands in neither list makes every word
// behind it a possible command.
var wrappers = map[string]wrapper{
	"env":               {valued: "-u --unset -C --chdir -S --split-string -P --argv0 -a", plain: "-i - -0 -v --ignore-environment --null --debug"},
	"sudo":              {valued: "-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir", plain: "-n -E -H -i -s -k -K -b -A -S -P --preserve-env --non-interactive --set-home --login --shell"},
	"doas":              {valued: "-u -C -a", plain: "-n -s -L"},
	"pkexec":            {valued: "--user", plain: "--disable-internal-agent --keep-cwd"},
	"run0":              {valued: "-u --user -g --group -D --chdir"},
	"runuser":           {valued: "-u -g -G --user --group"},
	"timeout":           {valued: "-s --signal -k --kill-after", plain: "-v --verbose --foreground --preserve-status", operands: 1},
	"nice":              {valued: "-n --adjustment"},
	"ionice":            {valued: "-c -n --class --classdata", plain: "-t --ignore"},
	"chrt":              {valued: "-T -P -D", plain: "-f -r -o -b -i", operands: 1},
	"taskset":           {plain: "-c --cpu-list", operands: 1},
	"nohup":             {},
	"setsid":            {plain: "-c -f -w --ctty --fork --wait"},
	"stdbuf":            {valued: "-i -o -e --input --output --error"},
	"time":              {valued: "-f -o --format --output", plain: "-p -v -a -q -l --portability --verbose --append"},
	"command":           {plain: "-p -v -V"},
	"builtin":           {},
	"exec":              {valued: "-a", plain: "-c -l"},
	"coproc":            {},
	"noglob":            {},
	"nocorrect":         {},
	"strace":            {valued: "-o -e -p -s -u -E -a -P -S", plain: "-f -ff -c -t -tt -T -v -y -q -k -C -i -r -x"},
	"ltrace":            {valued: "-o -e -p -s -u -n", plain: "-f -c -S -C"},
	"valgrind":          {},
	"caffeinate":        {valued: "-t -w", plain: "-d -i -m -s -u"},
	"unbuffer":          {plain: "-p"},
	"rlwrap":            {valued: "-f -H -p -C", plain: "-a -A -c"},
	"fakeroot":          {valued: "-l -s -i -b", plain: "-u --"},
	"proot":             {valued: "-r -b -w -q -R -S", plain: "-0"},
	"bwrap":             {valued: "--chdir --dev --proc --tmpfs --dir --hostname --uid --gid", plain: "--unshare-all --unshare-net --die-with-parent --new-session --share-net"},
	"unshare":           {plain: "-m -u -i -n -p -U -f -r --fork --net --map-root-user --mount --pid --user"},
	"nsenter":           {valued: "-t --target", plain: "-m -u -i -n -p -U -a"},
	"chroot":            {plain: "--skip-chdir", operands: 1},
	"flock":             {valued: "-w -E --timeout --wait", plain: "-n -x -s -e -u -o -F --nonblock --exclusive --shared", operands: 1},
	"systemd-run":       {valued: "-p -u -E --unit --property --uid --gid", plain: "--user --scope -t -P -q -d --pty --pipe --wait --quiet"},
	"setpriv":           {},
	"numactl":           {},
	"catchsegv":         {},
	"xvfb-run":          {valued: "-n -s -e -w", plain: "-a"},
	"dbus-run-session":  {plain: "--"},
	"dbus-launch":       {},
	"firejail":          {},
	"faketime":          {plain: "-f -m", operands: 1},
	"arch":              {plain: "-x86_64 -arm64"},
	"busybox":           {},
	"toybox":            {},
	"xargs":             {valued: "-n -L -P -s -I -d -E -a --max-args --max-lines --max-procs --max-chars --delimiter --arg-file -J -R -S --process-slot-var", plain: "-0 -r -t -p -x -o --null --no-run-if-empty --verbose --interactive -i -e -l"},
	"npx":               {valued: "-p --package -c --call -w --workspace", plain: "-y --yes --no --no-install -q --quiet --ignore-existing"},
	"bunx":              {plain: "--bun --silent --verbose"},
	"uvx":               {valued: "--from --with -p --python", plain: "-q --isolated"},
	"watch":             {valued: "-n --interval", plain: "-d -t -b -e -g -c -x --differences --no-title --beep --errexit --color --exec"},
	"parallel":          {valued: "-j --jobs -a --arg-file -S --sshlogin -I --colsep --delay --timeout --results --joblog", plain: "-k --keep-order --bar -u -q -X -m -0 --dry-run --progress --eta --will-cite"},
	"entr":              {plain: "-a -c -d -n -p -r -s -z -x"},
	"hyperfine":         {valued: "-w -r -m -M -n -p -c -s -S -L -P --warmup --runs --prepare --setup --cleanup --shell --conclude", plain: "-i -N --show-output"},
	"dotenv":            {valued: "-f -e --file"},
	"direnv":            {operands: 2},
	"aws-vault":         {operands: 2},
	"ssh-agent":         {},
	"script":            {valued: "-c --command -E -T -I -O -B", plain: "-q -a -e -f", operands: 1},
	"gdb":               {valued: "-x -p -c", plain: "--args -q -batch --batch -nx"},
	"lldb":              {plain: "--"},
	"perf":              {operands: 1},
	"ssh":               {valued: "-p -i -l -o -F -J -L -R -D -W -b -c -e -m -w -E -I -Q -S -B", plain: "-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -tt -V -v -vv -X -x -Y -y", operands: 1},
	"autossh":           {valued: "-M -p -i -l -o", operands: 1},
	"sshpass":           {valued: "-p -f -d -P", plain: "-e -v"},
	"torsocks":          {},
	"proxychains":       {valued: "-f", plain: "-q"},
	"proxychains4":      {valued: "-f", plain: "-q"},
	"op":                {operands: 1},
	"sem":               {},
	"setarch":           {plain: "-R", operands: 1},
	"linux64":           {},
	"start-stop-daemon": {},
	"daemonize":         {},
	"screen":            {valued: "-S -c -t", plain: "-d -m -dm -dmS -D"},
	"expect":            {},
}

// shellWrappers join their words to a line that a shell runs.
var shellWrappers = names(`watch parallel ssh autossh hyperfine entr script gdb screen sem`)

// wrapped looks at the command within the words of a wrapper.
func (l *line) wrapped(name string, w wrapper, args []string, input string) {
	valued, plain := strings.Fields(w.valued), strings.Fields(w.plain)
	operands := w.operands
	assigns := name == "env" || name == "sudo" || name == "doas" || name == "parallel"
	for i := 0; i < len(args); i++ {
		a := args[i]
		flag, value, joined := strings.Cut(a, "=")
		switch {
		case a == "--":
			l.inner(name, args[i+1:], operands, input)
			return
		case a == "-" && name == "env" || slices.Contains(plain, a) || slices.Contains(plain, flag):
		case strings.HasPrefix(a, "-") && slices.Contains(valued, flag):
			if !joined && i+1 < len(args) {
				i++
				value = args[i]
			}
			l.optionValue(name, flag, value)
		case len(a) > 2 && a[0] == '-' && a[1] != '-' && slices.Contains(valued, a[:2]):
			l.optionValue(name, a[:2], a[2:])
		case name == "nice" && strings.Trim(a, "-+0123456789") == "":
		case len(a) > 2 && a[0] == '-' && a[1] != '-' && cluster(a[1:], plain, valued):
			if last := "-" + a[len(a)-1:]; slices.Contains(valued, last) && i+1 < len(args) {
				i++
				l.optionValue(name, last, args[i])
			}
		case strings.HasPrefix(a, "-"):
			// An option that is not known: it may take a value, so any of the words may be the command.
			for j := i + 1; j < len(args); j++ {
				if !strings.HasPrefix(args[j], "-") {
					l.inner(name, args[j:], 0, input)
				}
			}
			return
		case assigns && joined && flag != "" && !strings.ContainsAny(flag, unsure+"/"):
			l.environment(flag, []string{value})
			l.set(flag, value)
		default:
			l.inner(name, args[i:], operands, input)
			return
		}
	}
	if name == "env" && !hasOption(args, "-S", "--split-string") {
		// What is in the environment has keys in it.
		l.found.add(Secret)
	}
	if name == "sudo" && hasOption(args, "-s", "-i", "--shell", "--login") || name == "doas" && hasOption(args, "-s") ||
		name == "chroot" || name == "unshare" || name == "nsenter" {
		// Without a command it is a shell.
		l.stdin(input)
	}
}

// cluster reports whether letters are short options that are known, of which only the last may take a value.
func cluster(letters string, plain, valued []string) bool {
	for i, r := range letters {
		o := "-" + string(r)
		if !slices.Contains(plain, o) && (i < len(letters)-1 || !slices.Contains(valued, o)) {
			return false
		}
	}
	return true
}

func (l *line) optionValue(name, flag, value string) {
	switch {
	case name == "env" && (flag == "-S" || flag == "--split-string"),
		name == "script" && (flag == "-c" || flag == "--command"),
		name == "npx" && (flag == "-c" || flag == "--call"), name == "hyperfine" && flag != "-n" && flag != "-w" && flag != "-r":
		l.shell(value)
	case name == "ssh" || name == "autossh":
		l.sshOption(value)
	case flag == "-C" && name == "env" || flag == "--chdir" || flag == "-D" && name == "sudo":
		l.enter(value)
	case name == "gdb" && flag == "-x":
		l.hide()
	case name == "sudo" && (flag == "-u" || flag == "-g"):
	default:
		l.mention(OpRead, value)
	}
}

func (l *line) sshOption(value string) {
	key, command, _ := strings.Cut(value, "=")
	if k := strings.ToLower(strings.TrimSpace(key)); strings.HasSuffix(k, "command") || strings.Contains(k, "command ") {
		l.shell(command)
		l.shell(strings.TrimPrefix(value, key))
		l.hide()
	}
}

// inner looks at the command itself, behind so many operands.
func (l *line) inner(name string, args []string, operands int, input string) {
	if len(args) < operands {
		operands = len(args)
	}
	args = args[operands:]
	for len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if name == "env" && len(args) == 0 {
		l.found.add(Secret)
	}
	if len(args) == 0 {
		if name == "ssh" && input != "" || name == "xargs" {
			l.shell(input)
		}
		return
	}
	switch {
	case name == "xargs":
		l.fed(args)
	case shellWrappers[name]:
		l.call(args, input)
		l.shell(strings.Join(args, " "))
		if name == "parallel" || name == "sem" || name == "entr" || name == "gdb" {
			l.fed(args)
		}
	case name == "exec" && strings.HasPrefix(args[0], "-"):
		l.hide()
	default:
		l.call(args, input)
	}
}

// fed looks at a command that gets more words from elsewhere, behind its own or in place of {}.
func (l *line) fed(args []string) {
	more := append(slices.Clone(args), string(anyText))
	for i, a := range more {
		if strings.Contains(a, "{}") || strings.Contains(a, "%") && len(a) == 1 {
			more[i] = strings.ReplaceAll(a, "{}", string(anyText))
		}
	}
	l.call(more, string(anyText))
}
