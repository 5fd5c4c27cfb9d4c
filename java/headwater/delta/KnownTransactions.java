package headwater.delta;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;

import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.VersionChecksum;
import org.apache.spark.sql.delta.actions.SetTransaction;
import org.apache.xbean.asm9.ClassReader;
import org.apache.xbean.asm9.ClassVisitor;
import org.apache.xbean.asm9.MethodVisitor;
import org.apache.xbean.asm9.Opcodes;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/**
 * The transactions that a table's checksum file names, given to a snapshot, which would otherwise compute them from all files.
 *
 * Delta 4.4 writes them there with each commit and does not read them; later versions do. The snapshot keeps them in a lazy
 * value, which has a field and a bit that says whether the field is set. Where a Delta has no such field, nothing is done.
 */
public final class KnownTransactions {
    private static final Logger LOG = LoggerFactory.getLogger(KnownTransactions.class);
    private static final LazyValue TRANSACTIONS = LazyValue.of(Snapshot.class, "transactions");

    private KnownTransactions() {
    }

    /** Returns whether the snapshot has its transactions now, without a computation. */
    public static boolean give(Snapshot snapshot) {
        Option<VersionChecksum> checksum = snapshot.checksumOpt();
        if (TRANSACTIONS == null || checksum.isEmpty()) {
            return false;
        }
        Option<Seq<SetTransaction>> known = checksum.get().setTransactions();
        return known.isDefined() && TRANSACTIONS.set(snapshot, byApplication(known.get()));
    }

    private static Map<String, Object> byApplication(Seq<SetTransaction> transactions) {
        Map<String, Object> versions = Map$.MODULE$.empty();
        for (Iterator<SetTransaction> all = transactions.iterator(); all.hasNext();) {
            SetTransaction transaction = all.next();
            versions = versions.updated(transaction.appId(), transaction.version());
        }
        return versions;
    }

    /** A lazy value of a Scala class. */
    private static final class LazyValue {
        private final Field value;
        private final Field bits;
        private final int bit;

        private LazyValue(Field value, Field bits, int bit) {
            this.value = value;
            this.bits = bits;
            this.bit = bit;
            value.setAccessible(true);
            bits.setAccessible(true);
        }

        /** Returns null where the class has no such value, or keeps it in another way. */
        static LazyValue of(Class<?> owner, String name) {
            try {
                Getter getter = new Getter(name);
                try (InputStream code = owner.getResourceAsStream(owner.getSimpleName() + ".class")) {
                    new ClassReader(code).accept(getter, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
                }
                Field bits = owner.getDeclaredField(getter.bits);
                if (Integer.bitCount(getter.bit) == 1 && bits.getType() == int.class) {
                    return new LazyValue(owner.getDeclaredField(name), bits, getter.bit);
                }
            } catch (IOException | ReflectiveOperationException | RuntimeException error) {
                LOG.debug("No lazy value {} in {}", name, owner, error);
            }
            LOG.warn("Delta has changed: it looks up transactions in its own way, with more Spark jobs.");
            return null;
        }

        /** Under the lock that the class itself takes to compute it; keeps what has been computed. */
        boolean set(Object object, Object content) {
            synchronized (object) {
                try {
                    int done = bits.getInt(object);
                    if ((done & bit) == 0) {
                        value.set(object, content);
                        bits.setInt(object, done | bit);
                    }
                    return true;
                } catch (IllegalAccessException error) {
                    return false;
                }
            }
        }
    }

    /** Reads from the code of a lazy value's getter, "if ((bits & bit) == 0) compute", which bit it is. */
    private static final class Getter extends ClassVisitor {
        private final String name;
        private String bits = "";
        private int bit;

        Getter(String name) {
            super(Opcodes.ASM9);
            this.name = name;
        }

        public MethodVisitor visitMethod(int access, String method, String type, String generic, String[] errors) {
            if (!method.equals(name) || !type.startsWith("()")) {
                return null;
            }
            return new MethodVisitor(Opcodes.ASM9) {
                public void visitFieldInsn(int code, String owner, String field, String kind) {
                    if (field.startsWith("bitmap$")) {
                        bits = field;
                    }
                }

                public void visitLdcInsn(Object constant) {
                    if (constant instanceof Integer) {
                        bit = (Integer) constant;
                    }
                }

                public void visitIntInsn(int code, int constant) {
                    bit = constant;
                }
            };
        }
    }
}
