What bench measures beside the floor, and the figures of the paper; gnuplot is a stand-in here.

-- case every kernel beside its floor, forward and backward
-- args
bench mlstm-sig --roofline --shape B=1,NH=2,T=128,dqk=32,dhv=64 --runs 1 --device emu
-- exit 0
-- stderr
times of the emulator say nothing about a GPU
-- stdout
on Tegula emulator, median of 1; roofs of A100 (sm_80): 1800 GB/s, 240 TFLOP/s by mma.sync
mlstm-sig B=1 NH=2 T=128 dqk=32 dhv=64: tfla
  kernel            ms         GB      GFLOP    flop/B   floor ms  of floor  limited by
  gates
  H
memory
mlstm-sig-backward B=1 NH=2 T=128
  dQ
  dgates
  whole call
one by one
  operation
each input and output once

-- case as JSON: of 2 heads the state has 2 x 128 x 32 x 64 flops each; each input and output is 192 values of 2 bytes and 2 gates of 4, 128 times
-- args
bench mlstm-sig --roofline --shape B=1,NH=2,T=128,dqk=32,dhv=64 --chunk 128 --runs 2 --device emu --json
-- exit 0
-- stdout
"kernels":[{"name":"gates","median_ms":
{"name":"state",
"flops":1.04858e6,
"floor_ms":
"of_floor":
"limit":"memory"
"operation":{"name":"operation",
"bytes":100352.0,"flops":0.0
"roofs":{"gpu":"A100","bytes_per_s":1.8e12
"backward":{"variant":"mlstm-sig-backward"
{"name":"dstate",

-- case states of a pool, which change in place, are timed kernel by kernel too
-- args
bench mlstm-exp --roofline --shape B=3,NH=2,T=1,dqk=16,dhv=32 --tokens 1 --pool --runs 2 --device emu
-- exit 0
-- stdout
step (default), chunk 1
  nstep

-- case the roofline drawn: roofs, points by name, kernels without products left out
-- program gnuplot
#!/bin/sh
/bin/cat "$1" >&2
-- args
bench mlstm-sig --roofline --shape B=1,NH=2,T=64,dqk=32,dhv=32 --runs 1 --device emu --svg r.svg
-- exit 0
-- stderr
set terminal svg
$s0 <<end
$s1 <<end
dQ 
roof(x, rate) = x * 1.8e+12 < rate
plot roof(x, 2.4e+14) with lines lc 'black' title 'roofs of A100', $s0 using 2:3 with points
title 'mlstm-sig-backward, T 64, tfla'
$s1 using 2:3:1 with labels
! gates
! so r.svg was not drawn

-- case without gnuplot the script stays
-- args
bench mlstm-sig --roofline --shape B=1,NH=1,T=16,dqk=16,dhv=16 --runs 1 --device emu --svg r.svg
-- exit 0
-- stdout
whole call
-- stderr
no gnuplot on PATH (Debian: gnuplot-nox), so r.svg was not drawn
`gnuplot r.svg.gp > r.svg`
-- file r.svg.gp
set terminal svg

-- case without gnuplot an older figure stays
-- text r.svg
precious
-- args
bench mlstm-sig --roofline --shape B=1,NH=1,T=16,dqk=16,dhv=16 --runs 1 --device emu --svg r.svg
-- exit 0
-- file r.svg
precious

-- case with gnuplot the figure takes the place of an older one, and a script of that name stays
-- program gnuplot
#!/bin/sh
echo drawn
-- text r.svg
older
-- text r.svg.gp
mine
-- args
bench mlstm-sig --roofline --shape B=1,NH=1,T=16,dqk=16,dhv=16 --runs 1 --device emu --svg r.svg
-- exit 0
-- file r.svg
drawn
! older
-- file r.svg.gp
mine

-- case a figure that is no file
-- args
bench mlstm-sig --roofline --shape B=1,NH=1,T=16,dqk=16,dhv=16 --runs 1 --device emu --svg .
-- exit 2
-- stderr
--svg: cannot write .: Is a directory

-- case gnuplot fails
-- program gnuplot
#!/bin/sh
echo half of it
exit 3
-- text r.svg
precious
-- args
bench mlstm-sig --roofline --shape B=1,NH=1,T=16,dqk=16,dhv=16 --runs 1 --device emu --svg r.svg
-- exit 1
-- stderr
gnuplot failed on r.svg.gp
-- file r.svg
precious

-- case a figure that cannot be written
-- args
bench mlstm-sig --roofline --shape B=1,NH=1,T=16,dqk=16,dhv=16 --runs 1 --device emu --svg nowhere/r.svg
-- exit 2
-- stderr
--svg: cannot write nowhere/r.svg

-- case figure 5: the tokens of --shape at lengths from 16 up, for every schedule asked for
-- program gnuplot
#!/bin/sh
/bin/cat "$1" >&2
-- args
bench --paper fig5 --shape B=2,NH=1,T=32,dqk=16,dhv=16 --schedule tfla --schedule tfla-small --runs 1 --device emu --svg f.svg
-- exit 0
-- stdout
  mlstm-sig          4    1          16   16   16
  mlstm-sig          2    1          32   16   16
  mlstm-sig          1    1          64   16   16
! 1    1         128
tfla (--schedule)
tfla-small (--schedule)
forward and backward; the latter
-- stderr
set multiplot layout 1,2 title 'Tegula emulator, 64 tokens, 1 heads of 16 / 16'
64 
, $s0 using 1:2 with linespoints lc 1 title 'tfla', $s1 using 1:2 with linespoints lc 2 title 'tfla-small'
, $s0 using 1:3

-- case figure 5 of another variant, as JSON
-- args
bench linear --paper fig5 --shape B=1,NH=1,T=16,dqk=16,dhv=16 --runs 1 --device emu --json
-- exit 0
-- stdout
{"variant":"linear"
"backward":{"variant":"linear-backward"
"both_ms":
"figure":"fig5"

-- case figure 5: a schedule that is none for this GPU, before anything is measured
-- args
bench --paper fig5 --shape B=2,NH=1,T=32,dqk=16,dhv=16 --schedule tfla --schedule walk --runs 1 --device emu
-- exit 2
-- stderr
wgmma is an instruction of sm_90a
hint: compile for sm_90a, or take a schedule with TG_MMA_SYNC
-- stdout
! tfla

-- case figure 6: chunk sizes that the schedule accepts, up to twice T
-- program gnuplot
#!/bin/sh
/bin/cat "$1" >&2
-- args
bench --paper fig6 --shape B=1,NH=1,T=128,dqk=16,dhv=16 --schedule tfla --runs 1 --device emu --svg f.svg
-- exit 0
-- stdout
tfla chunk=128 (--schedule)
! chunk=64
! chunk=256 
-- stderr
128 
set xlabel 'chunk size'
axes x1y2 with linespoints pt 6 dt 2 lc 1 title 'tfla: workspace'

-- case figure 6: no chunk size of the schedule is short enough
-- args
bench --paper fig6 --shape B=1,NH=1,T=64,dqk=16,dhv=16 --schedule tfla --runs 1 --device emu
-- exit 2
-- stderr
tfla: no chunk size from 64 to 4096 is accepted for T = 64

-- case a figure that is none
-- args
bench --paper fig7 --shape B=1,NH=1,T=64,dqk=16,dhv=16 --device emu
-- exit 2
-- stderr
--paper: unknown figure 'fig7'
hint: choose fig5 or fig6

-- case the figures have the paper's shapes, too large to emulate
-- args
bench --paper fig6 --device emu
-- exit 2
-- stderr
too large to emulate

-- case a roofline of what?
-- args
bench --roofline --shape B=1,NH=1,T=64,dqk=16,dhv=16 --device emu
-- exit 2
-- stderr
--roofline: expected a variant, found none

-- case two figures at once
-- args
bench mlstm-sig --roofline --paper fig5 --device emu
-- exit 2
-- stderr
--roofline and --paper are two figures

-- case two shapes of a figure
-- args
bench --paper fig5 --shape B=1,NH=1,T=64,dqk=16,dhv=16 --shape B=1,NH=1,T=32,dqk=16,dhv=16 --device emu
-- exit 2
-- stderr
a figure of --paper is of one shape

-- case nothing to draw
-- args
bench mlstm-sig --shape B=1,NH=1,T=64,dqk=16,dhv=16 --svg f.svg --device emu
-- exit 2
-- stderr
--svg: expected --roofline or --paper beside it, found neither
hint: add --roofline, or --paper fig5

-- case more schedules than fit a table
-- args
bench mlstm-sig --schedule a --schedule b --schedule c --schedule d --schedule e --schedule f --schedule g --schedule h --schedule i
-- exit 2
-- stderr
more than 8 --schedule options

-- case gradients with what the forward has kept, which they are timed with; optional states are not there
-- args
bench gated-delta --shape B=1,NH=2,T=130,dqk=128,dhv=128 --keep-states --runs 1 --device emu --arch sm_90a --json
-- exit 0
-- stdout
"variant":"gated-delta"
"schedule":"walk-narrow-keep"
"backward":{"variant":"gated-delta-backward"
-kept"
