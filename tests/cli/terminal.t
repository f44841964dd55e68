What a terminal shows is no wider than it is, and never than 100 columns; JSON and code are left alone.

-- case the help of devices
-- args
devices --help
-- terminal 100
-- exit 0
-- stdout
  --help

-- case the help of variants
-- args
variants --help
-- terminal 100
-- exit 0
-- stdout
  --help

-- case the help of explain
-- args
explain --help
-- terminal 100
-- exit 0
-- stdout
  --help

-- case the help of compile
-- args
compile --help
-- terminal 100
-- exit 0
-- stdout
  --help

-- case the help of check
-- args
check --help
-- terminal 100
-- exit 0
-- stdout
  --help

-- case the help of run
-- args
run --help
-- terminal 100
-- exit 0
-- stdout
  --help

-- case the help of tune
-- args
tune --help
-- terminal 100
-- exit 0
-- stdout
  --help

-- case the help of bench
-- args
bench --help
-- terminal 100
-- exit 0
-- stdout
  --help

-- case the help of study
-- args
study --help
-- terminal 100
-- exit 0
-- stdout
  --help

-- case all commands
-- args
help
-- terminal 100
-- exit 0
-- stdout
bench     time kernels

-- case all variants
-- args
variants
-- terminal 100
-- exit 0
-- stdout
  schedules: step

-- case on a narrow one
-- args
explain mamba2 --arch sm_90a --ptxas none
-- terminal 72
-- exit 0
-- stdout
  in   Cm[t,dqk] io

-- case on one that is wider than anybody reads
-- args
devices
-- terminal 300
-- exit 0
-- stdout
Tegula emulator

-- case devices
-- args
devices
-- terminal 100
-- exit 0
-- stdout
Tegula emulator

-- case a check, whose longest name makes room for all; a limit below each other
-- args
check mamba2 --shape B=1,NH=2,T=70,dqk=32,dhv=32 --grad --device emu
-- terminal 100
-- exit 0
-- stdout
  grad.dt_bias rms
  grad.x       rms
ok, against the oracle

-- case a table of times
-- args
bench mlstm-sig --shape B=1,NH=2,T=70,dqk=32,dhv=32 --runs 1 --roofline --grad --device emu
-- terminal 100
-- exit 0
-- stdout
limited by
GB/s

-- case a prediction
-- args
tune mlstm-sig --gpu H200 --shape B=8,NH=16,T=8192,dqk=128,dhv=256
-- terminal 100
-- exit 0
-- stdout
PREDICTED

-- case a table over gates
-- args
study transfer mlstm-sig --shape B=1,NH=1,T=16,dqk=16,dhv=16 --device emu
-- terminal 100
-- exit 0
-- stdout
      -5      -4
       4       5

-- case what a compiled program has
-- args
compile mlstm-sig --arch sm_90a --dqk 128 --dhv 256 -o out --ptxas none
-- terminal 100
-- exit 0
-- stdout
tegula_mlstm_sig_

-- case mistakes and their hints
-- args
explain mlstm-sig --schedule walk --dqk 512 --dhv 512 --arch sm_80
-- terminal 80
-- exit 2
-- stdout
  hint: 

-- case code is no text
-- args
explain mlstm-sig --arch sm_90a --dqk 128 --dhv 256 --stage ptx --schedule walk --ptxas none
-- terminal 40 any
-- exit 0
-- stdout
mbarrier.try_wait.parity.shared::cta.b64

-- case nor is JSON
-- args
variants mlstm-sig --json
-- terminal 80 any
-- exit 0
-- stdout
"schedules":["step","step-wide","step-wider","step8","step8-narrow","tfla","tfla-wide"
