;; The action `ship-order`, written by hand: what a module of ABI 1 looks like without a compiler.
;;
;;   input   any JSON, for example {"id":"A-17"}
;;   output  {"shipped":true,"order":{"id":"A-17"}}
;;
;; An empty input is invalid (-1). `flo action register ship-order --wasm ship-order.wat` takes this
;; text as it is.
(module
  ;; log(level, pointer, length); level 2 is "info".
  (import "flo" "log" (func $log (param i32 i32 i32)))

  (memory (export "memory") 1)
  (data (i32.const 16) "{\"shipped\":true,\"order\":")
  (data (i32.const 64) "order shipped")

  ;; Everything below this address is taken. An instance serves one call, so nothing is given back.
  (global $top (mut i32) (i32.const 1024))

  ;; Reserves $length bytes and answers where they begin, or 0 when memory cannot grow enough.
  (func $alloc (export "alloc") (param $length i32) (result i32)
    (local $start i32)
    (local $pages_missing i32)
    (local.set $start (global.get $top))
    (global.set $top (i32.add (local.get $start) (local.get $length)))
    ;; A sum past 4 GiB begins again at 0.
    (if (i32.lt_u (global.get $top) (local.get $start))
      (then (return (i32.const 0))))
    (local.set $pages_missing
      (i32.sub
        (i32.add (i32.shr_u (global.get $top) (i32.const 16)) (i32.const 1))
        (memory.size)))
    (if (i32.gt_s (local.get $pages_missing) (i32.const 0))
      (then
        (if (i32.eq (memory.grow (local.get $pages_missing)) (i32.const -1))
          (then (return (i32.const 0))))))
    (local.get $start))

  ;; Answers the output's pointer in the high 32 bits and its length in the low 32.
  (func (export "handle") (param $input i32) (param $length i32) (result i64)
    (local $output i32)
    (local $output_length i32)
    (if (i32.eqz (local.get $length))
      (then (return (i64.const -1))))
    ;; 24 bytes of text before the input, one after it.
    (local.set $output_length (i32.add (local.get $length) (i32.const 25)))
    (local.set $output (call $alloc (local.get $output_length)))
    (if (i32.eqz (local.get $output))
      (then (return (i64.const -2))))
    (memory.copy (local.get $output) (i32.const 16) (i32.const 24))
    (memory.copy
      (i32.add (local.get $output) (i32.const 24))
      (local.get $input)
      (local.get $length))
    (i32.store8
      (i32.add (local.get $output) (i32.add (local.get $length) (i32.const 24)))
      (i32.const 125)) ;; }
    (call $log (i32.const 2) (i32.const 64) (i32.const 13))
    (i64.or
      (i64.shl (i64.extend_i32_u (local.get $output)) (i64.const 32))
      (i64.extend_i32_u (local.get $output_length)))))
