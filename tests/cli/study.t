How the gates of the mLSTM pass a signal on (TFLA paper, figure 4); gnuplot is a stand-in here.

-- case both mLSTMs, by the fp64 recurrence and by the kernels: alike behind the norm
-- args
study transfer --shape B=1,NH=1,T=48,dqk=16,dhv=24 --device emu
-- exit 0
-- stdout
mlstm-exp bf16, T=48 dqk=16 dhv=24, norm eps 1e-06; schedule tfla
mlstm-sig bf16, T=48 dqk=16 dhv=24, norm eps 1e-06; schedule tfla
  gain before the norm, by the kernel: i down, f across
  gain after the norm, by the kernel: i down, f across
  fp64: at most 0.
  half of the gain behind the norm at i =
mlstm-exp and mlstm-sig: gains differ by at most
-- stderr
! error

-- case as JSON: what is let in at i = -12 is what e^-12 of k.q lets in, and behind the norm a thousand times that
-- args
study transfer mlstm-sig --shape B=1,NH=1,T=48,dqk=16,dhv=24 --dtype f32 --device emu --json
-- exit 0
-- stdout
"study":"transfer"
"dtype":"f32","T":48,"dqk":16,"dhv":24,"eps":1e-6,"seed":0
"variant":"mlstm-sig"
{"i":-12,"f":-5,"before":{"fp64":4.10043e-6,"kernel":4.10043e-6},"after":{"fp64":0.00410034,"kernel":0.00410034}}
"half_way":[{"f":-5,"fp64":-
"deviation":{"before":
! null

-- case a larger eps asks for more input, and one variant is compared with none
-- args
study transfer mlstm-sig-norm --shape B=1,NH=1,T=48,dqk=16,dhv=24 --eps 0.01 --device emu
-- exit 0
-- stdout
norm eps 0.01
! and mlstm

-- case the figure: a panel for each variant before and after the norm
-- program gnuplot
#!/bin/sh
/bin/grep -e "^set" -e "^plot" -e "end$" -e "^12 8 " "$1" >&2
-- args
study transfer --shape B=1,NH=1,T=16,dqk=16,dhv=16 --device emu --svg t.svg
-- exit 0
-- stderr
set multiplot layout 2,2 title 'gain over gates, T 16, 16 / 16, norm eps 1e-06'
set xlabel 'f'
set title 'mlstm-exp, before the norm'
plot $s0 using 1:2:3 with image notitle
set title 'mlstm-sig, after the norm'
plot $s3 using 1:2:3 with image notitle
$s3 <<end
12 8 
! so t.svg was not drawn

-- case an unknown study
-- args
study transfers
-- exit 2
-- stderr
unknown study 'transfers'

-- case a variant without these gates
-- args
study transfer mamba2 --device emu
-- exit 2
-- stderr
mamba2 does not take q, k, v and the gates f and i

-- case gated retention has but one
-- args
study transfer gated-retention --device emu
-- exit 2
-- stderr
gated-retention does not take q, k, v and the gates f and i

-- case several heads
-- args
study transfer --shape B=1,NH=4,T=48,dqk=16,dhv=24 --device emu
-- exit 2
-- stderr
the study is of one head, found B=1 NH=4

-- case a width that no kernel has
-- args
study transfer --shape B=1,NH=1,T=48,dqk=16,dhv=20 --device emu
-- exit 2
-- stderr
dhv is 20: expected a multiple of 8 from 16 to 512
