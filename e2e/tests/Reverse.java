import org.apache.spark.sql.api.java.UDF1;

/** A function of SQL that the test of packages resolves: the letters of a text in reverse order. */
public final class Reverse implements UDF1<String, String> {
    @Override
    public String call(String text) {
        return new StringBuilder(text).reverse().toString();
    }
}
